#!/usr/bin/env python3
"""Counts the instructions of CUDA attention with every normalizer beside softmax's: the measure of
their speed until there is a GPU.

  scripts/count_normalizers.py [--build build-vgpu] [--length 2048] [--ptxas PTXAS]
                               [--nvdisasm NVDISASM]

Runs BUILD/bench/cuda.vgpu, bench/cuda on the virtual GPU (PROGRAMS=bench/cuda
../shared/virtual_gpu/build.sh makes it), which counts how often each line of PTX runs; kernel_sass.py
turns that into instructions of sm_90's machine code (nvdisasm: pip install nvidia-cuda-nvdisasm). The
report goes to bench/results/normalizers-cuda.md. Expects committed sources, unless --dirty.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from cpu_bench.programs import ROOT
from cpu_bench.tables import table
from kernel_sass import count_options, counted_sources, kernels_of

# Normalizer, form of the bias, least ratio to softmax's count in the same form.
ROWS = [("general", "none", 0.5), ("general", "table", 0.5), ("entmax-1.5", "none", 0.5),
        ("entmax-1.5", "table", 1.0), ("sparsemax", "none", 0.5), ("sparsemax", "table", 1.0),
        ("entmax-1.7", "none", 0.25), ("topk-32", "none", 0.5), ("stick-breaking", "none", 0.6)]


def counted(build, length, normalizer, form, ptxas, nvdisasm):
    """Counts of each attention kernel in one forward and backward pass; the share of nonzero blocks."""
    with tempfile.TemporaryDirectory() as folder:
        command = [build / "bench/cuda.vgpu", "--product", "64", "--array", "4096", "attention",
                   "--length", str(length), "--tokens", str(length), "--heads", "1", "--head-dim", "64",
                   "--form", form, "--normalizer", normalizer]
        environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "virtual_gpu/lib"), VGPU_PROFILE="1",
                           VGPU_PROFILE_OUT=f"{folder}/profile.txt", VGPU_DUMP_PTX=folder,
                           VGPU_SHARE_SLOTS="0", VGPU_CC="90")
        done = subprocess.run([str(c) for c in command], env=environment, text=True,
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(f"count_normalizers.py: {command[0]} failed: {done.stderr or done.stdout}")
        live = [json.loads(line)["live"] for line in done.stdout.splitlines()
                if line.startswith("{") and '"live"' in line]
        kernels = kernels_of(pathlib.Path(folder), ptxas, nvdisasm)
    return [k for name, k in kernels.items() if "attention" in name], live[0] if live else 1.0


ROLES = ["forward", "queries", "keys"]  # a kernel has the first of these that its name holds


def millions(kernels, role=None, count="issue"):
    def role_of(name):
        return next((r for r in ROLES if r in name), "")

    return sum(getattr(k, count) for k in kernels if role in (None, role_of(k.name))) / 1e6


def main():
    parser = count_options(__doc__.splitlines()[0], "normalizers-cuda.md")
    parser.add_argument("--length", type=int, default=2048)
    args = parser.parse_args()
    commit, tools = counted_sources(args)
    softmax = {form: counted(args.build, args.length, "softmax", form, *tools)
               for form in ("none", "table")}
    rows = []
    for normalizer, form, target in [("softmax", "none", None), ("softmax", "table", None), *ROWS]:
        kernels, live = softmax[form] if normalizer == "softmax" else \
            counted(args.build, args.length, normalizer, form, *tools)
        speed = millions(softmax[form][0]) / millions(kernels)
        rows.append([normalizer, form, f"{100 * live:.1f} %",
                     *(f"{millions(kernels, role):.2f}" for role in (*ROLES, None)),
                     f"{millions(kernels, count='ptx'):.2f}",
                     "" if target is None else f"{speed:.3f}, {'met' if speed >= target else 'not met'}",
                     "" if target is None else str(target)])
        print(rows[-1], flush=True)
    head = ["normalizer", "form", "nonzero blocks", "forward", "of queries", "of keys", "all", "all, PTX",
            "speed over softmax's", "at least"]
    args.output.write_text(f"""# CUDA: normalizers beside softmax, counted

Virtual GPU, sm_90; commit {commit}; {datetime.date.today()}. No GPU has checked it.

Attention forward and backward, bf16, T {args.length}, one head of 64: millions of instructions of sm_90's
machine code that warps execute (how they are counted: `scripts/kernel_sass.py`), in the forward
kernel, the backward kernel of queries, that of keys, and all; and of PTX. Live tiles: the share of
16 x 64 tiles of visible keys that get any weight. Softmax is the fused path, "general" softmax by the
path of all the others. Ratios are of counts of machine code, in place of times.

{table(head, rows)}

`scripts/count_normalizers.py --length {args.length}`
""")
    print(f"written: {args.output}")


if __name__ == "__main__":
    main()
