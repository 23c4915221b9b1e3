#!/usr/bin/env python3
"""Reads a run's event files with TensorBoard and compares every value with metrics.jsonl.

  scripts/check_tensorboard.py RUN...

RUN is the out_dir of a run with log.tensorboard. Needs the Python packages tensorboard and numpy,
which nothing else here does:

  python3 -m venv venv && venv/bin/pip install tensorboard
"""

import json
import pathlib
import sys

import numpy as np
from tensorboard.backend.event_processing import event_accumulator

EVERYTHING = {kind: 0 for kind in (event_accumulator.SCALARS, event_accumulator.HISTOGRAMS,
                                   event_accumulator.TENSORS)}


def accumulate(folder):
    """What TensorBoard has of a folder: {tag: {step: value}}, a histogram as its message."""
    events = event_accumulator.EventAccumulator(str(folder), size_guidance=EVERYTHING)
    events.Reload()
    found = {}
    for tag in events.Tags()["scalars"]:
        found[tag] = [(e.step, e.value) for e in events.Scalars(tag)]
    for tag in events.Tags()["histograms"]:
        found[tag] = [(e.step, e.histogram_value) for e in events.Histograms(tag)]
    for tag, points in found.items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), f"{folder}: {tag}: steps {steps}"
    return {tag: dict(points) for tag, points in found.items()}


def check_histogram(histogram, values):
    values = np.asarray(values, np.float32).astype(np.float64)
    assert histogram.num == values.size
    assert histogram.min == values.min() and histogram.max == values.max()
    assert np.isclose(histogram.sum, values.sum(), rtol=1e-12, atol=1e-12 * abs(values).sum())
    assert np.isclose(histogram.sum_squares, (values**2).sum(), rtol=1e-12)
    right = np.asarray(histogram.bucket_limit)
    left = np.concatenate([[histogram.min], right[:-1]])
    rounding = 1e-12 * max(abs(histogram.min), abs(histogram.max))
    assert sum(histogram.bucket) == values.size
    for low, high, count in zip(left, right, histogram.bucket):
        inside = ((values > low + rounding) & (values < high - rounding)).sum()
        touching = ((values >= low - rounding) & (values <= high + rounding)).sum()
        assert inside <= count <= touching


def check_run(run):
    found = accumulate(run / "tensorboard")
    scalars = histograms = 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        for kind in ("entropy", "support"):
            for layer, heads in enumerate(line.get("attention", {}).get(kind, [])):
                tag = f"attention/{kind}/layer_{layer}"
                mean = np.float32(sum(heads) / len(heads))
                assert found[tag].pop(line["step"]) == mean, (line["step"], tag)
                check_histogram(found[tag + "/heads"].pop(line["step"]), heads)
                scalars += 1
                histograms += 1
        for tag, value in line.items():
            if isinstance(value, float):
                assert found[tag].pop(line["step"]) == np.float32(value), (line["step"], tag)
                scalars += 1
        for name, values in line.get("parameters", {}).items():
            kind = "scale" if ".scale." in name else "prior"
            check_histogram(found[f"{kind}/{name}"].pop(line["step"]), values)
            histograms += 1
    left = {tag: points for tag, points in found.items() if points}
    # Histograms at checkpoints between validation passes are not in metrics.jsonl.
    unknown = [tag for tag in left if not tag.startswith(("prior/", "scale/"))]
    assert not unknown, f"steps that metrics.jsonl has not: {left}"
    print(f"{run}: {len(lines)} lines, {scalars} scalars and {histograms} histograms agree", end="")

    result = run / "perplexity.json"
    if result.exists():
        curves = accumulate(run / "tensorboard/perplexity")
        protocols = json.loads(result.read_text())
        for protocol in ("windows", "last"):
            truth = {row["length"]: np.float32(row["perplexity"]) for row in protocols[protocol]}
            assert curves.pop(f"perplexity/{protocol}") == truth
        assert not curves
        print(", perplexity against length too", end="")
    print()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        check_run(pathlib.Path(argument))
