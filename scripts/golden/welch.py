#!/usr/bin/env python3
"""Writes tests/golden/welch.json: samples and scipy's two-sided p-values of Welch's t-test.

By hand, with scipy: scripts/golden/welch.py [--check]
"""

import json
import pathlib
import random
import sys

from scipy import stats

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/welch.json"


def cases():
    rng = random.Random(20)
    yield [1.0, 2.0, 3.0], [2.0, 3.0, 5.5]
    yield [0.99, 1.0, 1.0], [0.1, 0.12, 0.09]  # p far below 1e-4
    yield [5.0, 5.0, 5.0], [5.0, 5.0, 5.25]    # one sample without a spread
    yield [1.0, 2.0], [1.0, 2.0]               # p 1
    for a, b in ((2, 2), (3, 3), (3, 8), (20, 5), (40, 60)):
        yield ([rng.gauss(0, 1) for _ in range(a)], [rng.gauss(0.5, 3) for _ in range(b)])


def main():
    welch = [{"a": a, "b": b, "p": float(stats.ttest_ind(a, b, equal_var=False).pvalue)}
             for a, b in cases()]
    student = [[t, freedom, float(2 * stats.t.sf(t, freedom))]
               for t in (0.0, 0.1, 1.0, 2.5, 12.7, 60.0)
               for freedom in (0.5, 1.0, 2.0, 3.7, 30.0, 1e4)]
    text = json.dumps({"welch": welch, "student": student}, indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if PATH.read_text() == text else "welch.json is not as scipy says")
    PATH.write_text(text)


if __name__ == "__main__":
    main()
