#!/usr/bin/env python3
"""Models what a training step takes on a GPU, kernel by kernel. A model: no GPU has checked it.

  scripts/kernel_model.py [--build build-vgpu] [--profiles DIR] [--ptxas PTXAS]
                          [--nvdisasm NVDISASM] [--output bench/results/cost-model.md]

A step of one layer, one sequence and each configuration's widths runs on a virtual GPU (docs/build:
../shared/virtual_gpu/build.sh makes BUILD/src/bamtrain.vgpu), which counts how often each line of
PTX runs, bank conflicts and sectors. --profiles keeps these profiles in DIR and reads them from
there the next time, unless the program is newer. kernel_sass.py turns them into what sm_90's
machine code asks of a multiprocessor (nvdisasm: pip install nvidia-cuda-nvdisasm), kernel_costs.py
has the bytes, kernel_times.py the model and what it assumes, which the output says too.
"""

import argparse
import collections
import pathlib
import sys
import tempfile

from kernel_costs import ROOT, Shapes, operations, paragraph, table, total
from kernel_sass import kernels_of, profile, program
from kernel_times import (CLOCK, GAP, GPUS, KERNELS, L2, LAUNCH, LIMITS, MEMORY_SHARE, MMA_CLOCKS,
                          MMA_FLOPS, MMA_SHARE, ON_CHIP, PEAK_RATE, PRODUCT, SLACK, SMS, Row, find,
                          step)

CONFIGS = {"bam-120m": 64, "bam-432m": 16, "bam-1.1b": 16}  # sequences of the tables in full

# --- tables -------------------------------------------------------------------------------------


def group_of(row):
    name = row.operation
    for key, group in (("product head", "head"), ("product", "products of the blocks"),
                       ("attention", "attention"), ("norm, ", "norms"), ("activation", "SwiGLU"),
                       ("cross entropy", "cross entropy")):
        if name.startswith(key):
            return group
    return "all else"


def groups(rows):
    sums = collections.Counter()
    for r in rows:
        sums[group_of(r)] += r.seconds
    return sums


# By hand, of bam-120m with micro-batches of 32,768 tokens; ms on an H100 and an H200.
BY_HAND = {"products of the blocks": (24.3, 24.3), "head": (7.9, 7.9), "attention": (10.5, 10.4),
            "norms": (3.7, 2.6), "SwiGLU": (3.5, 2.4), "cross entropy": (3.0, 2.3),
            "all else": (0.8, 0.8)}
BY_HAND_SPEED = (610e3, 647e3)


def bound(row):
    """The limit that says how long a launch takes."""
    if row.seconds / row.calls <= 1.001 * (LAUNCH + GAP):
        return "launch"
    return max(row.limits, key=lambda k: row.limits[k] * (SLACK if k in ON_CHIP else 1))


def row_text(row, whole):
    each = row.seconds / row.calls
    return (row.operation, f"`{row.kernel}`" if "_" in row.kernel else row.kernel,
            f"{row.calls:.4g}", f"{1e6 * each:,.1f}", f"{1e3 * row.seconds:.3f}",
            f"{100 * row.seconds / whole:.1f} %", bound(row),
            *(f"{100 * row.limits[k] / each:.0f}" if k in row.limits else "" for k in LIMITS))


def step_table(rows):
    """The rows that take 1/1000 of the step or more, the others as one."""
    whole = sum(r.seconds for r in rows)
    large = sorted((r for r in rows if r.seconds >= whole / 1000), key=lambda r: -r.seconds)
    small = [r for r in rows if r.seconds < whole / 1000]
    rest = sum(r.seconds for r in small)
    texts = [row_text(r, whole) for r in large]
    texts.append((f"{len(small)} others", "", "", "", f"{1e3 * rest:.3f}",
                  f"{100 * rest / whole:.1f} %", *[""] * 7))
    texts.append(("all", "", f"{sum(r.calls for r in rows):.0f}", "", f"{1e3 * whole:.3f}",
                  *[""] * 8))
    return table(("operation", "kernel", "calls", "us a call", "ms", "of all", "bound by",
                  *(f"{k}, %" for k in LIMITS)), texts)


def bound_text(rows):
    whole, sums = sum(r.seconds for r in rows), collections.Counter()
    for r in rows:
        sums[bound(r)] += r.seconds
    return ", ".join(f"{name} {100 * t / whole:.0f} %" for name, t in sums.most_common()
                     if t >= whole / 200)


def speed(s, rows):
    return s.N / sum(r.seconds for r in rows)


def summary(models):
    """models: [(config, Shapes, {GPU: rows})]."""
    out = []
    for config, s, steps in models:
        flops = sum(o.least_flops * o.times / s.micro for o in operations(s))
        for gpu, rows in steps.items():
            out.append((config, f"{s.n / 1e6:,.0f} M", f"{s.N:,}", gpu.name,
                        f"{s.N / speed(s, rows) * 1e3:.1f}", f"{speed(s, rows):,.0f}",
                        f"{100 * flops * speed(s, rows) / s.N / PEAK_RATE:.0f} %",
                        bound_text(rows)))
    return table(("configuration", "parameters", "tokens of a micro-batch", "GPU", "ms",
                  "tokens/s", "of 989 TFLOP/s", "time by what bounds it"), out)


def by_hand_table(s, steps):
    own = [groups(rows) for rows in steps.values()]
    rows = [(name, *(f"{1e3 * g[name]:.1f}" for g in own), *(f"{x:.1f}" for x in theirs),
             *(f"{1e3 * g[name] / x - 1:+.0%}".replace("%", " %") for g, x in zip(own, theirs)))
            for name, theirs in BY_HAND.items()]
    speeds = [speed(s, r) for r in steps.values()]
    rows.append(("tokens/s", *(f"{x / 1e3:.0f}k" for x in speeds),
                 *(f"{x / 1e3:.0f}k" for x in BY_HAND_SPEED),
                 *(f"{x / y - 1:+.0%}".replace("%", " %") for x, y in zip(speeds, BY_HAND_SPEED))))
    names = [g.name for g in GPUS]
    return table(("ms", *names, *(f"{n}, by hand" for n in names),
                  *(f"{n}, difference" for n in names)), rows)


def why_cross_entropy(s, _):
    o = next(o for o in operations(s) if o.name == "cross entropy")
    theirs = total(o.once) / (BY_HAND["cross entropy"][0] * 1e-3) / GPUS[0].memory
    return f"""the other is {100 * theirs:.0f} % of an H100's bandwidth, this one
        {100 * MEMORY_SHARE:.0f} %, for the same {total(o.once) / 1e9:.1f} GB. Blocks
        that wait at barriers between reading, summing and writing a row, two of them on a
        multiprocessor, are not modelled: a GPU has to say."""


def why_all_else(s, steps):
    rows = [r for r in steps[GPUS[0]] if group_of(r) == "all else"]
    return f"""here {sum(r.calls for r in rows):.0f} launches a micro-batch, most of them near the
        least time, {1e6 * (LAUNCH + GAP):.0f} us with the gap, and the passes over the parameters,
        of which a micro-batch has 1/{s.micro}. The gaps after products and larger kernels are in
        their lines."""


WHY = {"cross entropy": why_cross_entropy, "all else": why_all_else}


def differences(s, steps):
    """A sentence or two for each line that is more than a fifth off the estimate by hand."""
    out = []
    for name, theirs in BY_HAND.items():
        own = [1e3 * groups(rows)[name] for rows in steps.values()]
        if all(abs(x / y - 1) <= 0.2 for x, y in zip(own, theirs)):
            continue
        if name not in WHY:
            sys.exit(f"kernel_model: {name}: {own} ms, by hand {theirs}: WHY has to say why")
        out.append(paragraph(f"- {name}: {WHY[name](s, steps)}"))
    return "\n".join(out) + "\n"


def checks(models, profiles):
    """What counts and formulas agree on; a disagreement ends the program."""
    worst = max((k.agreement for kernels in profiles.values() for k in kernels.values()),
                key=lambda a: abs(a - 1))
    ratios = []
    for config, s, _ in models:
        small, kernels = Shapes(config, 1, 1), profiles[config]
        for o in operations(small):
            if o.name.startswith("attention"):
                counted = sum(kernels[find(kernels, k)].mma for k in KERNELS[o.name])
                ratios.append(counted * MMA_FLOPS / o.flops)
    ratio = max(ratios, key=lambda r: abs(r - 1))
    if abs(worst - 1) > 0.05 or abs(ratio - 1) > 0.01:
        sys.exit(f"kernel_model: machine code over PTX {worst:.3f}, attention's products over the "
                 f"formulas' {ratio:.3f}: neither may differ from 1 so much")
    return paragraph(f"""Checked: products, ldmatrix, shuffles and exponentials, which PTX and
        machine code have alike, are in each kernel {worst:.3f} times as many in the machine code
        as the virtual GPU ran, where they differ most; attention's products are {ratio:.3f} times
        those of the formulas of `scripts/kernel_costs.py`.""")


def by_hand_rate(s, group):
    """TFLOP/s of the time by hand, on an H100."""
    flops = sum(o.flops * o.times / s.micro for o in operations(s)
                if o.gemms and group_of(Row(o.name, "", 0, 0, {})) == group)
    return flops / (BY_HAND[group][0] * 1e-3) / 1e12


def assumptions(s):
    texts = (
        f"""Memory: {100 * MEMORY_SHARE:.0f} % of the vendor's {GPUS[0].memory / 1e12} and
        {GPUS[1].memory / 1e12} TB/s; L2: {L2 / 1e12} TB/s. {SMS} multiprocessors at
        {CLOCK / 1e9} GHz. What L1 serves is in its clocks, not in L2's bytes.""",
        f"""A multiprocessor issues four warp instructions a clock, moves 128 bytes of shared
        memory or L1 a clock (bank conflicts counted), computes 16 lanes of special functions and
        conversions a clock, and a quarter of it an m16n8k16 in {MMA_CLOCKS:.2f} clocks: `mma.sync`
        reaches {100 * MMA_SHARE:.1f} % of what `wgmma` does (arXiv 2402.13499). A kernel takes
        {SLACK} times the largest of these, for what does not overlap: 1.35 to 1.5 are likely.""",
        f"""Rounds: blocks over those that all multiprocessors hold at once, rounded up, as if all
        took as long. {1e6 * LAUNCH:.0f} us at least for a kernel, {1e6 * GAP:.0f} us between
        two.""", f"""cuBLASLt: {PRODUCT / 1e12:.0f} TFLOP/s, where its tiles of 128 x 256 fill
        whole rounds of {SMS}; long sums are cut where that fills them better. That is
        {100 * PRODUCT / PEAK_RATE:.0f} % of the vendor's 989; the times of the estimate by hand are
        {by_hand_rate(s, "products of the blocks"):.0f} TFLOP/s in the blocks and
        {by_hand_rate(s, "head"):.0f} in the head.""",
        """Not modelled: waiting for latency beyond the slack (few warps, barriers), lanes at work
        at once, a clock that power lowers, half-rate integer, conversion and fp64 pipes, caches
        that miss what they should hold, the loader, several GPUs. The optimizer's launches are
        counted in a model of one layer. Rounds lengthen what memory bounds too: where few blocks
        are at work, "bound by" names what they would wait for.""",
        """A micro-batch has its part of what a step does once. Micro-batches are the
        configuration's own of 16 sequences, and 64, as in the estimate by hand. Work per token is that of one
        sequence, whose attention_backward_keys has up to 8 blocks a head: with 64 sequences each
        owns more tiles and zeroes fewer sums.""")
    return "\n".join(paragraph(f"- {t}") for t in texts) + "\n"


def report(models, profiles):
    config, s, steps = next(m for m in models if m[0] == "bam-120m")
    tables = "\n".join(f"## {c}, micro-batches of {t.N:,} tokens, {g.name}\n\n{step_table(rows)}"
                       for c, t, each in models if t.B == CONFIGS[c] for g, rows in each.items())
    return f"""\
# Cost model of a training step on an H100 and an H200

**A model: no GPU has checked it.** `scripts/kernel_model.py --build build-vgpu` computes it from
the kernels' machine code for sm_90 and from what a virtual GPU counts in a step.

{summary(models)}
## Beside an estimate by hand

{config}, micro-batches of {s.N:,} tokens, ms:

{by_hand_table(s, steps)}
{differences(s, steps)}
## How

{checks(models, profiles)}

{assumptions(s)}
In the tables below: the time of a micro-batch, T {s.T}; per kernel each limit alone in % of the time
of a call (product: cuBLASLt's, as assumed). Where issue, shared, mma or special binds, it is at
most {100 / SLACK:.0f} %: the rest is slack, rounds and gap. Kernels with less than a thousandth of
the time are one row.

{tables}"""


def profiled(description, report_name):
    """The command line of a model: where its report goes, by default bench/results/`report_name`,
    and {configuration: kernels} of a step of one layer and one sequence."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-vgpu")
    parser.add_argument("--profiles", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--ptxas")
    parser.add_argument("--nvdisasm")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results" / report_name)
    args = parser.parse_args()
    ptxas, nvdisasm = program("ptxas", args.ptxas), program("nvdisasm", args.nvdisasm)
    kernels = {}
    with tempfile.TemporaryDirectory() as own:
        for config in CONFIGS:
            folder = (args.profiles or pathlib.Path(own)) / config
            profile(args.build.resolve(), config, Shapes(config, 1, 1), folder)
            kernels[config] = kernels_of(folder, ptxas, nvdisasm)
    return args.output, kernels


def main():
    output, profiles = profiled(__doc__, "cost-model.md")
    models = []
    for config, kernels in profiles.items():
        small = Shapes(config, 1, 1)
        for B in (64, None):
            s = Shapes(config, B)
            models.append((config, s, {g: step(s, small, kernels, g) for g in GPUS}))
    output.write_text(report(models, profiles))


if __name__ == "__main__":
    main()
