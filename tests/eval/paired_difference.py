#!/usr/bin/env python3
"""Checks the differences between lengths in an evaluation's file against numpy.

    tests/eval/paired_difference.py PERPLEXITY.json

Recomputes each row's difference from the sums by document, with a regression of the documents' sums
on their counts, and the loss of each row. Ends with 77 where numpy is missing.
"""

import json
import sys

try:
    import numpy
except ImportError:
    print("numpy is missing: install it to check paired differences")
    sys.exit(77)


def error_of_ratio(sums, counts):
    """Standard error of sum(sums) / sum(counts): weighted least squares of the documents' means on a
    constant, with a heteroscedasticity-robust variance."""
    weights = counts / counts.sum()
    residuals = sums / counts - (weights * (sums / counts)).sum()
    documents = len(sums)
    return numpy.sqrt(documents / (documents - 1) * ((weights * residuals) ** 2).sum())


def check(name, found, expected):
    if not numpy.isclose(found, expected, rtol=1e-8, atol=1e-12):
        sys.exit(f"{name}: found {found}, numpy has {expected}")


def main():
    result = json.load(open(sys.argv[1]))
    checked = 0
    for protocol in ("windows", "last"):
        rows = {row["length"]: row for row in result.get(protocol, [])}
        arrays = {length: numpy.array(row["sums"].split(), float) for length, row in rows.items()}
        for length, row in rows.items():
            counts = numpy.array(result["target_counts"][row["targets"]].split(), float)
            sums = arrays[length]
            check(f"{protocol} {length}: loss", row["loss"], sums.sum() / counts.sum())
            check(f"{protocol} {length}: loss_error", row["loss_error"], error_of_ratio(sums, counts))
            if "difference" not in row:
                continue
            d = row["difference"]
            base = arrays[d["from_length"]]
            check("loss", d["loss"], (sums - base).sum() / counts.sum())
            check("loss_error", d["loss_error"], error_of_ratio(sums - base, counts))
            ppl, base_ppl = row["perplexity"], rows[d["from_length"]]["perplexity"]
            check("perplexity", d["perplexity"], ppl - base_ppl)
            check("perplexity_error", d["perplexity_error"],
                  error_of_ratio(ppl * sums - base_ppl * base, counts))
            checked += 1
    print(f"{checked} differences are numpy's")
    sys.exit(0 if checked else "no differences")


if __name__ == "__main__":
    main()
