"""Writes a C++ file that holds others: embed.py OUTPUT.cpp INPUT... (see python_files.h)."""

import pathlib
import sys

DELIMITER = "python_file"


def main():
    output, *inputs = map(pathlib.Path, sys.argv[1:])
    entries = []
    for path in inputs:
        text = path.read_text(encoding="ascii")
        assert f'){DELIMITER}"' not in text, path
        entries.append(f'    {{"{path.name}",\n     R"{DELIMITER}({text}){DELIMITER}"}},\n')
    output.write_text('#include "export/python_files.h"\n\n'
                      "namespace bamtrain {\n\n"
                      "std::span<const PythonFile> python_files() {\n"
                      "  static const PythonFile files[] = {\n" + "".join(entries) +
                      "  };\n  return files;\n}\n\n}  // namespace bamtrain\n", encoding="ascii")


main()
