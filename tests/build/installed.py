#!/usr/bin/env python3
"""Checks what `meson install` installs: programs, manual pages, completions, configs, pages.

    tests/build/installed.py BUILD
"""

import json
import pathlib
import sys

EXPECTED = ("bin/bamtrain", "bin/bamdata", "man1/bamtrain.1", "man1/bamdata.1",
            "bash-completion/completions/bamtrain", "zsh/site-functions/_bamtrain",
            "fish/vendor_completions.d/bamtrain.fish", "share/bamtrain/configs", "share/doc/bamtrain")


def main():
    plan = json.loads((pathlib.Path(sys.argv[1]) / "meson-info/intro-installed.json").read_text())
    targets = [pathlib.PurePath(target) for target in plan.values()]
    failed = 0
    for name in EXPECTED:
        parts = pathlib.PurePath(name).parts
        if not any(target.parts[-len(parts):] == parts for target in targets):
            failed += 1
            print(f"expected {name} to be installed, found only {[str(t) for t in targets]}")
    for target in targets:
        other_program = target.parent.name == "bin" and target.name not in ("bamtrain", "bamdata")
        if other_program or target.suffix in (".h", ".cpp", ".a"):
            failed += 1
            print(f"expected programs and pages, found {target}")
    print(f"test cases: 1 | {int(not failed)} passed | {int(failed > 0)} failed")
    sys.exit(failed > 0)


main()
