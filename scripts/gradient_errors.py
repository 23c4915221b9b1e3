#!/usr/bin/env python3
"""Tabulates what bf16 costs the gradients of priors' and scales' parameters.

  scripts/gradient_errors.py [--build DIR] [--gpu PROGRAM]

Runs the tests that compare them with fp32's (tests/ops/half_precision.cpp, tests/model/half_precision.h)
and prints the relative errors that they measured, the worst of a mechanism's forms; PROGRAM is
test_cuda_gpu on a machine with a GPU.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = (64, 256, 1024, 2048)
OF_OPERATION = re.compile(r"([\w.]+) of (\w+) with (\w+), T (\d+) error ([-+.\de]+)")
OF_MODEL = re.compile(r"prior\.(\w+) of (\w+), scale (\w+), [^:]*?T (\d+): ([-+.\de]+)")


def measured(program, case, pattern):
    """{(mechanisms, parameter): {T: error}} of a passing test case."""
    run = subprocess.run([program, case, "-s"], cwd=ROOT, capture_output=True, text=True, check=False,
                         env={**os.environ, "BAMTRAIN_SOURCE": str(ROOT)})
    if run.returncode != 0:
        sys.exit(f"gradient_errors.py: {program} {case!r}: expected it to pass: {run.stdout[-2000:]}")
    found = {}
    for match in pattern.finditer(" ".join(run.stdout.split())):
        parameter, prior, scale, length, error = match.groups()
        both = prior if scale == "none" else scale if prior == "nope" else f"{prior}, {scale}"
        row = found.setdefault((both, parameter.rpartition(".")[2]), {})
        row[int(length)] = max(float(error), row.get(int(length), 0))
    if not found:
        sys.exit(f"gradient_errors.py: {program} {case!r}: expected errors, found none (no bf16 "
                 "products on this machine?)")
    return found


def table(title, found):
    print(f"| {title} | parameter |" + "".join(f" T {n:,} |" for n in LENGTHS))
    print("|---|---|" + "---|" * len(LENGTHS))
    for (mechanisms, parameter), row in found.items():
        print(f"| {mechanisms} | `{parameter}` |"
              + "".join(f" {100 * row[n]:.2f} % |" if n in row else " |" for n in LENGTHS))
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--gpu", type=pathlib.Path, help="test_cuda_gpu, where there is a GPU")
    args = parser.parse_args()
    tests = args.build.resolve() / "tests"
    for program in (tests / "ops/test_ops", tests / "model/test_model", *([args.gpu] if args.gpu else [])):
        if not program.is_file():
            sys.exit(f"gradient_errors.py: {program}: expected a test program, found none: build it")
    table("operations, CPU", measured(tests / "ops/test_ops", "gradients of every mechanism*",
                                      OF_OPERATION))
    table("a model of one layer, CPU", measured(tests / "model/test_model", "gradients of gates*",
                                                OF_MODEL))
    if args.gpu:
        table("a model of one layer, CUDA", measured(args.gpu.resolve(), "gradients of gates*",
                                                     OF_MODEL))


if __name__ == "__main__":
    main()
