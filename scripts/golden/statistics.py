#!/usr/bin/env python3
"""Writes tests/golden/statistics.json: tests of differences, computed by numpy and scipy.

By hand, with numpy and scipy: scripts/golden/statistics.py [--check]

welch    samples, and the p-values of scipy's Welch test
student  [t, degrees of freedom, two-sided p]
paired   losses of single tokens of two models, by document, and their paired differences
seeds    values of two rows in pairs, and scipy's paired t-test
holm     p-values and their corrections: by closed testing, of which Holm's method is the shortcut
"""

import itertools
import json
import pathlib
import random
import sys

import numpy
from scipy import stats

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/statistics.json"


def welch_cases():
    rng = random.Random(20)
    yield [1.0, 2.0, 3.0], [2.0, 3.0, 5.5]
    yield [0.99, 1.0, 1.0], [0.1, 0.12, 0.09]  # p far below 1e-4
    yield [5.0, 5.0, 5.0], [5.0, 5.0, 5.25]    # one sample without a spread
    yield [1.0, 2.0], [1.0, 2.0]               # p 1
    for a, b in ((2, 2), (3, 3), (3, 8), (20, 5), (40, 60)):
        yield ([rng.gauss(0, 1) for _ in range(a)], [rng.gauss(0.5, 3) for _ in range(b)])


def two_models(documents, longest, shift):
    """Losses of two models in documents of different lengths and difficulty."""
    rng = random.Random(f"{documents} {longest} {shift}")
    pairs = []
    for _ in range(documents):
        level, own = rng.gauss(3, 1), rng.gauss(shift, 0.05)
        losses = [round(level + rng.gauss(0, 0.5), 6) for _ in range(rng.randint(1, longest))]
        pairs.append([losses, [round(x + own + rng.gauss(0, 0.1), 6) for x in losses]])
    return pairs


def sandwich(values, clusters):
    """Mean of values and its cluster-robust standard error: (X'X)^-1 X' uu' X (X'X)^-1 of a
    regression on a constant, with the full matrix of products within clusters."""
    x = numpy.ones((len(values), 1))
    bread = numpy.linalg.inv(x.T @ x)
    mean = float((bread @ x.T @ values)[0])
    u = values - mean
    same = numpy.equal.outer(clusters, clusters)
    meat = x.T @ (numpy.outer(u, u) * same) @ x
    groups = len(set(clusters))
    variance = (bread @ meat @ bread)[0, 0] * groups / (groups - 1)
    return mean, float(numpy.sqrt(variance))


def paired(documents):
    a = numpy.concatenate([d[0] for d in documents])
    b = numpy.concatenate([d[1] for d in documents])
    clusters = numpy.concatenate([[n] * len(d[0]) for n, d in enumerate(documents)])
    loss, loss_error = sandwich(a - b, clusters)
    # The gradient of exp(mean a) - exp(mean b), applied to each token's influence on the two means.
    ppl_a, ppl_b = numpy.exp(a.mean()), numpy.exp(b.mean())
    influence = ppl_a * (a - a.mean()) - ppl_b * (b - b.mean())
    _, perplexity_error = sandwich(influence, clusters)
    p = 2 * stats.t.sf(abs(loss / loss_error), len(documents) - 1)
    return {"documents": documents, "loss": loss, "loss_error": loss_error,
            "perplexity": float(ppl_a - ppl_b), "perplexity_error": perplexity_error, "p": float(p)}


def seeds(a, b):
    test = stats.ttest_rel(a, b)
    difference = numpy.subtract(a, b)
    return {"a": a, "b": b, "difference": float(difference.mean()),
            "error": float(stats.sem(difference)), "p": float(test.pvalue)}


def closed_testing(p):
    """The largest Bonferroni p of all subsets of the family that contain the hypothesis."""
    every = [s for n in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), n)]
    return [max(min(1.0, len(s) * min(p[j] for j in s)) for s in every if i in s)
            for i in range(len(p))]


def main():
    rng = random.Random(21)
    values = {
        "welch": [{"a": a, "b": b, "p": float(stats.ttest_ind(a, b, equal_var=False).pvalue)}
                  for a, b in welch_cases()],
        "student": [[t, freedom, float(2 * stats.t.sf(t, freedom))]
                    for t in (0.0, 0.1, 1.0, 2.5, 12.7, 60.0)
                    for freedom in (0.5, 1.0, 2.0, 3.7, 30.0, 1e4)],
        "paired": [paired(two_models(*case))
                   for case in ((2, 3, 0.1), (5, 12, 0.0), (12, 20, 0.2), (40, 8, 0.02))],
        "seeds": [seeds([rng.gauss(20, 2) for _ in range(n)], [rng.gauss(20.5, 2) for _ in range(n)])
                  for n in (2, 3, 5, 12)] + [seeds([0.5, 0.625, 0.75], [0.25, 0.5, 0.5])],
        "holm": [{"p": p, "corrected": closed_testing(p)}
                 for p in ([0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.9], [0.02, 0.02, 0.02],
                           [round(rng.random() ** 3, 6) for _ in range(9)])],
    }
    text = json.dumps(values, indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if PATH.read_text() == text else "statistics.json is not as numpy and scipy say")
    PATH.write_text(text)


if __name__ == "__main__":
    main()
