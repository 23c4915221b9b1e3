#!/usr/bin/env python3
"""Tests scripts/run_docs.sh on a page of its own, with an mpirun that starts programs or refuses to.

    tests/docs/run_docs.py SOURCE
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def outcome(source, folder, mpirun):
    """Exit code and standard error of run_docs.sh with this mpirun."""
    program = folder / "mpirun"
    program.write_text(f"#!/bin/sh\n{mpirun}\n")
    program.chmod(0o755)
    page = folder / "page.md"
    page.write_text("# A page\n\n    mpirun -np 2 true\n")
    ended = subprocess.run([source / "scripts" / "run_docs.sh", page], capture_output=True, text=True,
                           env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    return ended.returncode, ended.stderr


def main():
    source = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        code, text = outcome(source, folder, "exit 0")
        assert code == 0 and "ALLOW_RUN_AS_ROOT" not in text, (code, text)
        code, text = outcome(source, folder, "echo 'mpirun: a reason of its own' >&2; exit 1")
        assert code == 1, (code, text)
        for part in ("mpirun: a reason of its own", "page.md: mpirun does not start here",
                     "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                     "PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"):
            assert part in text, (part, text)
    print("All tests passed (6 assertions in 1 test case)")


if __name__ == "__main__":
    main()
