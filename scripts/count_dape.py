#!/usr/bin/env python3
"""Counts what a training step with DAPE takes on CUDA beside one without: the measure of its speed
until there is a GPU.

  scripts/count_dape.py [--build build-vgpu] [--profiles DIR] [--ptxas PTXAS] [--nvdisasm NVDISASM]

Steps run on the virtual GPU (../shared/virtual_gpu/build.sh makes BUILD/src/bamtrain.vgpu), which counts
how often each line of PTX runs; kernel_sass.py turns that into instructions of sm_90's machine code
(nvdisasm: pip install nvidia-cuda-nvdisasm), and the limits of kernel_times.py into times. Attention's
kernels are those of three sequences and one layer, times the layers; the others, which both models have,
those of one sequence and what a second layer adds to the first, times the layers. --profiles keeps the
profiles in DIR. The report goes to bench/results/dape-cuda.md. Expects committed sources, unless --dirty.
"""

import collections
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

from cpu_bench.programs import ROOT
from cpu_bench.tables import table
from kernel_sass import count_options, counted_sources, kernels_of, profile
from kernel_times import L2, ON_CHIP, PRODUCT, SLACK, limits_of

CONFIGS = {"kerple": "dape-kerple-125m", "dape over kerple": "dape-dape-kerple-125m"}
TARGET = 0.8
# Of a backward part of attention_content.h at T 512.
SEQUENCES = 3
# Kernels that run once a step, or once for all sequences of a micro-batch.
OF_A_STEP = ("optimizer_update", "square_tiles", "sum_elements<double>", "update_clip_factor", "add_tiles",
             "convert_tiles")
OF_ALL = ("table_of_prior", "gradient_of_prior", "attention_backward_table", "mix_table", "mix_of_table",
          "mix_of_distances_sums", "mix_join", "mix_join_shares")
Cost = collections.namedtuple("Cost", "launches issue mma sectors seconds bound")
Shape = collections.namedtuple("Shape", "T V")


def cost_of(counts):
    """Of all launches of a kernel in a step; its seconds with all multiprocessors at work, without
    the bytes of memory: those that L1 does not hold come from L2."""
    limits = limits_of(counts, 1, 0, 32 * counts.sectors)
    times = {k: limits[k] * (SLACK if k in ON_CHIP else 1) for k in (*ON_CHIP, "L2")}
    bound = max(times, key=times.get)
    n = counts.launches
    return Cost(n, n * counts.issue, n * counts.mma, n * counts.sectors, n * times[bound], bound)


def is_attention(kernel):
    return kernel.startswith(("attention_", "content_", "mix_")) or kernel.split("<")[0] in OF_ALL


def config_of(build, name):
    """The configuration with its base."""
    printed = subprocess.run([build / "src/bamtrain", "train", ROOT / f"configs/{name}.json", "--print-config"],
                             check=True, capture_output=True)
    return json.loads(printed.stdout)


def costs_of(build, name, folder, tools, layers, sequences):
    """{kernel: Cost} of a step of so many layers and sequences."""
    c = config_of(build, name)
    of = folder / f"{name}-{layers}-{sequences}"
    profile(build, name, Shape(c["data"]["sequence_length"], c["model"]["vocab"]), of, layers, sequences)
    return {kernel: cost_of(counts) for kernel, counts in kernels_of(of, *tools).items()}


def times(x, cost):
    return Cost(*(x * y for y in cost[:-1]), cost.bound)


def plus(one, two):
    return Cost(*(x + y for x, y in zip(one[:-1], two[:-1])), two.bound)


def others(build, c, folder, tools):
    """Of the kernels that are not attention's, a sequence's part of a micro-batch."""
    name, layers = CONFIGS["kerple"], c["model"]["layers"]
    one, two = (costs_of(build, name, folder, tools, n, 1) for n in (1, 2))
    sequences = c["train"]["tokens_per_step"] // c["data"]["sequence_length"]
    costs = {}
    for kernel, more in two.items():
        if is_attention(kernel):
            continue
        first = one.get(kernel, times(0, more))
        all_layers = plus(first, times(layers - 1, plus(times(-1, first), more)))
        costs[kernel] = times(1 / sequences if kernel.split("<")[0] in OF_A_STEP else 1, all_layers)
    return costs


def attention(build, name, c, folder, tools):
    costs = costs_of(build, name, folder, tools, 1, SEQUENCES)
    return {kernel: times(c["model"]["layers"] / (c["train"]["micro_batch"]
                                                  if kernel.split("<")[0] in OF_ALL else SEQUENCES), x)
            for kernel, x in costs.items() if is_attention(kernel)}


def product_seconds(c):
    """Of the model's matrices, by cuBLASLt, per sequence."""
    m, T = c["model"], c["data"]["sequence_length"]
    C, F = m["width"], m["mlp"]["hidden"]
    matrices = 3 if m["mlp"]["kind"] in ("swiglu", "geglu") else 2
    weights = m["layers"] * (4 * C * C + matrices * C * F) + m["vocab"] * C
    return 6 * weights * T / PRODUCT


def main():
    parser = count_options(__doc__.splitlines()[0], "dape-cuda.md")
    parser.add_argument("--profiles", type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    commit, tools = counted_sources(args)
    with tempfile.TemporaryDirectory() as own:
        folder = args.profiles or pathlib.Path(own)
        build = args.build.resolve()
        c = config_of(build, CONFIGS["kerple"])
        shared = others(build, c, folder, tools)
        models = {name: shared | attention(build, config, c, folder, tools)
                  for name, config in CONFIGS.items()}
    sums, rows, products = {}, [], product_seconds(c)
    for name, costs in models.items():
        sums[name] = products + sum(x.seconds for x in costs.values())
        for kernel, x in sorted(costs.items(), key=lambda item: -item[1].seconds):
            if x.seconds > sums[name] / 200:
                rows.append([name, f"`{kernel}`", f"{x.launches:.4g}", f"{x.issue / 1e6:.2f}",
                             f"{x.mma / 1e6:.2f}", f"{32 * x.sectors / 1e6:,.1f}",
                             f"{1e6 * x.seconds:.1f}", x.bound])
        rows.append([name, "matrix products", "", "", "", "", f"{1e6 * products:.1f}", ""])
        rows.append([name, "all", "", f"{sum(x.issue for x in costs.values()) / 1e6:.2f}",
                     f"{sum(x.mma for x in costs.values()) / 1e6:.2f}", "",
                     f"{1e6 * sums[name]:.1f}", ""])
    base, mixed = sums.values()
    ratio = base / mixed
    head = ["", "kernel", "launches", "instructions, M", "products, M", "bytes past L1's, MB", "us",
            "bound by"]
    args.output.write_text(f"""# CUDA: a training step with DAPE beside one without, counted

Virtual GPU, sm_90; commit {commit}; {datetime.date.today()}. No GPU has checked it.

{", ".join(f"`configs/{x}.json`" for x in CONFIGS.values())}, T {c["data"]["sequence_length"]}, bf16; per
sequence of a micro-batch of {c["train"]["micro_batch"]}, all {c["model"]["layers"]} layers, forward and backward. A kernel's time is the
longest of its limits on 132 multiprocessors: {SLACK} times what a multiprocessor issues, moves or
computes (`scripts/kernel_times.py`), or the bytes that it asks L1 for at {L2 / 1e12} TB/s of L2.
Products of matrices at {PRODUCT / 1e12:.0f} TFLOP/s. Rounds that are not full, gaps between launches and
memory slower than L2 are not in it.

**{ratio:.3f}** of kerple's speed with DAPE over it; at least {TARGET} was asked for: {"met" if ratio >= TARGET else "not met"}.

{table(head, rows)}

`scripts/count_dape.py`
""")
    print(f"{ratio:.3f}; written: {args.output}")


if __name__ == "__main__":
    main()
