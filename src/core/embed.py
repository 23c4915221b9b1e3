#!/usr/bin/env python3
"""Writes a C++ file whose function returns the given files, so that one binary holds them.

  embed.py HEADER OUTPUT.cpp FILE...

HEADER, "commands/documentation.h", declares the function, which has its name:
std::span<const EmbeddedFile> documentation();
"""

import pathlib
import sys

LONGEST = 60000  # of a string literal, in bytes; the standard asks compilers for 65,536


def literal(text):
    data = text.encode()
    pieces = [data[i:i + LONGEST] for i in range(0, len(data), LONGEST)] or [b""]
    return "\n".join('R"embedded(' + p.decode("latin-1") + ')embedded"' for p in pieces)


def main():
    header, output, *files = sys.argv[1:]
    function = pathlib.Path(header).stem
    lines = [f'#include "{header}"', "", "namespace bamtrain {", "", "namespace {", "",
             "constexpr EmbeddedFile kFiles[] = {"]
    for file in map(pathlib.Path, files):
        text = file.read_text(encoding="utf-8")
        if "\0" in text or ')embedded"' in text:
            sys.exit(f"embed.py: {file}: text that a raw string literal cannot hold")
        lines.append(f'{{"{file.name}", {literal(text)}}},')
    lines += ["};", "", "}  // namespace", "",
              f"std::span<const EmbeddedFile> {function}() {{ return kFiles; }}", "",
              "}  // namespace bamtrain", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="latin-1")


main()
