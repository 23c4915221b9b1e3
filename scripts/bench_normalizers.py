#!/usr/bin/env python3
"""Measures every normalizer beside softmax on this CPU: attention, a whole step, its memory.

  scripts/bench_normalizers.py [--build DIR] [--runs 5] [--length 2048] [--isas newest avx2]

A row is a normalizer and softmax in the same form, forward and backward, in turn: the medians of the
times, and the median of the pairs' ratios of speed with its range. "general" is softmax by the path
that the others take, beside the fused one. Then ASEntmax's step beside softmax's, and the largest
resident set of a step with every normalizer that the program has, at three lengths. The report goes to
bench/results/normalizers.md. The build has to be up to date and its sources committed, unless --dirty.
Leave the machine alone meanwhile.
"""

import argparse
import datetime
import pathlib
import re
import shlex
import sys

from bench_cpu import machine, positive
from bench_priors import RESIDENT, small_step
from cpu_bench.programs import ROOT, Build, Failed, Record, capture, commit_of
from cpu_bench.tables import cell, number, ratios, table
from cpu_bench.targets import SPEED
from program_schema import mechanism_names

BOTH_MS = r"^both +([\d.]+) ms"
LIVE = re.compile(r"^live +([\d.]+) %", re.M)
# Normalizer, form of the bias, standard deviation of the logits without it, least ratio.
ROWS = [("general", "none", 1, 0.5), ("general", "table", 1, 0.5), ("general", "difference", 1, 0.5),
        ("general", "fire", 1, 0.5), ("general", "scale", 1, 0.5),
        ("entmax-1.5", "none", 1, 0.5), ("entmax-1.5", "scale", 1, 0.5),
        ("entmax-1.5", "table", 1, 1.0), ("sparsemax", "none", 1, 0.5), ("sparsemax", "table", 1, 1.0),
        ("entmax-1.7", "none", 1, 0.25), ("topk-32", "none", 1, 0.5),
        ("stick-breaking", "none", 1, 0.6)]
STEP = ["bench/step", "--config", "configs/bam-120m.json", "--batch", "2", "--length", "512", "--precision",
        "fp32", "--set", "model.attention.prior=nape", "--set", "model.attention.scale=adaptive", "--set"]
LENGTHS = (4096, 8192, 16384)


def measured(build, args, isa):
    rows = []
    for normalizer, form, content, target in ROWS:
        times, live = {"softmax": [], normalizer: []}, "100"
        for _ in range(args.runs):
            for name, found in times.items():
                words = ["bench/attention", "--length", str(args.length), "--head-dim", "64", "--isa", isa,
                         "--form", form, "--content", str(content), "--normalizer", name]
                text = build.run(words)
                found.append(float(capture(text, BOTH_MS)))
                if name != "softmax" and (match := LIVE.search(text)):
                    live = match.group(1)
        rows.append([normalizer, form, f"{live} %", cell(times["softmax"], " ms"),
                     cell(times[normalizer], " ms"), ratios(times["softmax"], times[normalizer], target),
                     str(target)])
        print(isa, rows[-1], flush=True)
    return table(["normalizer", "form", "nonzero blocks", "softmax", "time", "speed over softmax's",
                  "at least"], rows)


def step(build, args):
    """The step of BAM-120M's shape with the prior and the scale of ASEntmax, softmax and entmax in
    turn."""
    speeds = {"softmax": [], "entmax": []}
    for _ in range(args.runs):
        for name, found in speeds.items():
            found.append(float(capture(build.run([*STEP, f"model.attention.normalizer={name}"]), SPEED)))
            print(name, found[-1], flush=True)
    return table(["what", "softmax", "entmax 1.5", "entmax over softmax", "at least"], [[
        "nape + adaptive, BAM-120M's shape, T 512, fp32",
        *(cell(found, " tokens/s") for found in speeds.values()),
        ratios(speeds["entmax"], speeds["softmax"], 0.85), "0.85"]])


def memory(build, names):
    """What a step's largest resident set grows by, from length to length."""
    rows = []
    for name in names:
        sizes = [float(capture(build.run(small_step(T, f"attention.normalizer={name}")), RESIDENT))
                 for T in LENGTHS]
        rows.append([name, *(f"{number(size)} MiB" for size in sizes),
                     *(f"{1024 * (b - a) / (t - s):.1f} KiB" for a, b, s, t in
                       zip(sizes, sizes[1:], LENGTHS, LENGTHS[1:]))])
        print(rows[-1], flush=True)
    return table(["normalizer", *(f"T {T:,}" for T in LENGTHS),
                  *(f"a token, {s:,} to {t:,}" for s, t in zip(LENGTHS, LENGTHS[1:]))], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=positive, default=5, help="pairs of each row")
    parser.add_argument("--length", type=positive, default=2048)
    parser.add_argument("--isas", nargs="+", default=["newest", "avx2"], choices=["newest", "avx2"])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/normalizers.md")
    parser.add_argument("--dirty", action="store_true",
                        help="measure uncommitted sources, and builds that are not up to date")
    args = parser.parse_args()
    build = Build("", args.build, Record())
    if not args.dirty and (commit_of(ROOT).endswith("-dirty") or build.stale()):
        sys.exit("bench_normalizers.py: expected committed sources and an up-to-date build, found others; "
                 "commit and build, or measure with --dirty")
    try:
        library = build.run(["bench/step", "--version"]).strip()
        sections = "\n\n".join(f"Instruction set `{isa}`, fp32:\n\n{measured(build, args, isa)}"
                               for isa in args.isas)
        whole = step(build, args)
        names = mechanism_names(build.run(["src/bamtrain", "--print-schema"]), "normalizer")
        resident = memory(build, names)
    except Failed as reason:
        sys.exit(f"bench_normalizers.py: {reason}")
    own = ["scripts/bench_normalizers.py", "--runs", str(args.runs), "--length", str(args.length),
           "--isas", *args.isas, *(["--dirty"] if args.dirty else [])]
    args.output.write_text(f"""# CPU: normalizers beside softmax

{machine()}; {library}; commit {build.commit}; {datetime.date.today()}.

Attention forward and backward, T {args.length}, 12 heads of 64, each normalizer and softmax in turn,
{args.runs} times each. Live tiles: the share of 16 x 64 tiles of visible keys that get any weight. The
table is -0.01 d; logits without a bias have standard deviation 1. Softmax is the fused path; "general"
is softmax by the path of all the others, which forms D_i anew instead of reading `out`.

{sections}

A whole step, both normalizers in turn, {args.runs} times each:

{whole}

Largest resident set of a training step, one sequence, a model of 2 layers of width 128 with 2 heads, and
what a token more adds to it. One fp32 number per head for every pair of tokens would add 4 KiB a token
for each thousand of them.

{resident}

`{shlex.join(own)}`
""")
    print(f"written: {args.output}")


if __name__ == "__main__":
    main()
