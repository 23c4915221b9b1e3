#!/usr/bin/env python3
"""Writes a C++ file whose function returns the given files, so that one binary holds them.

  embed.py FUNCTION OUTPUT.cpp FILE...

FUNCTION is declared in a header of src/commands: std::span<const EmbeddedFile> FUNCTION();
"""

import pathlib
import sys

LONGEST = 60000  # of a string literal, in bytes; the standard asks compilers for 65,536


def literal(text):
    data = text.encode()
    pieces = [data[i:i + LONGEST] for i in range(0, len(data), LONGEST)] or [b""]
    return "\n".join('R"embedded(' + p.decode("latin-1") + ')embedded"' for p in pieces)


def main():
    function, output, *files = sys.argv[1:]
    lines = ['#include "commands/embedded.h"', "", "namespace bamtrain {", "", "namespace {", "",
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
