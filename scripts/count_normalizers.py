#!/usr/bin/env python3
"""Counts the instructions of CUDA attention with every normalizer beside softmax's: the measure of
their speed until a GPU is at hand.

  scripts/count_normalizers.py [--build build-vgpu] [--length 2048]

Runs BUILD/bench/cuda.vgpu, bench/cuda on the virtual GPU (PROGRAMS=bench/cuda
../shared/virtual_gpu/build.sh makes it), which counts the PTX instructions that warps execute. The
report goes to bench/results/normalizers-cuda.md. Expects committed sources, unless --dirty.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

from cpu_bench.programs import ROOT, commit_of
from cpu_bench.tables import table

# Normalizer, form of the bias, least ratio to softmax's count in the same form.
ROWS = [("general", "none", 0.5), ("general", "table", 0.5), ("entmax-1.5", "none", 0.5),
        ("entmax-1.5", "table", 1.0), ("sparsemax", "none", 0.5), ("sparsemax", "table", 1.0),
        ("entmax-1.7", "none", 0.25), ("topk-32", "none", 0.5), ("stick-breaking", "none", 0.6)]
KERNEL = re.compile(r"kernels\d+(attention\w*?)(?:I|E|$)")


def counted(build, length, normalizer, form):
    """Warp instructions of each attention kernel in one forward and backward pass; live tiles."""
    command = [build / "bench/cuda.vgpu", "--product", "64", "--array", "4096", "attention", "--length",
               str(length), "--tokens", str(length), "--heads", "1", "--head-dim", "64", "--form", form,
               "--normalizer", normalizer]
    environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "virtual_gpu/lib"), VGPU_PROFILE="1",
                       VGPU_SHARE_SLOTS="0", VGPU_CC="90")
    done = subprocess.run([str(c) for c in command], env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"count_normalizers.py: {command[0]} failed: {done.stderr or done.stdout}")
    kernels, live = {}, 1.0
    for line in (done.stdout + done.stderr).splitlines():
        if line.startswith("{") and '"live"' in line:
            live = json.loads(line)["live"]
        fields = line.split()
        if len(fields) > 4 and fields[1].isdigit() and (match := KERNEL.search(fields[0])):
            kernels[match.group(1)] = int(fields[3]) / int(fields[1])
    return kernels, live


ROLES = ["forward", "queries", "keys"]  # a kernel has the first of these that its name holds


def millions(kernels, role=None):
    def role_of(name):
        return next((r for r in ROLES if r in name), "")

    return sum(n for name, n in kernels.items() if role in (None, role_of(name))) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-vgpu")
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/normalizers-cuda.md")
    parser.add_argument("--dirty", action="store_true", help="count uncommitted sources")
    args = parser.parse_args()
    commit = commit_of(ROOT)
    if commit.endswith("-dirty") and not args.dirty:
        sys.exit("count_normalizers.py: expected committed sources, found changes; commit them, or count "
                 "with --dirty")
    softmax = {form: counted(args.build, args.length, "softmax", form) for form in ("none", "table")}
    rows = []
    for normalizer, form, target in [("softmax", "none", None), ("softmax", "table", None), *ROWS]:
        kernels, live = softmax[form] if normalizer == "softmax" else \
            counted(args.build, args.length, normalizer, form)
        speed = millions(softmax[form][0]) / millions(kernels)
        rows.append([normalizer, form, f"{100 * live:.1f} %",
                     *(f"{millions(kernels, role):.2f}" for role in (*ROLES, None)),
                     "" if target is None else f"{speed:.3f}, {'met' if speed >= target else 'not met'}",
                     "" if target is None else str(target)])
        print(rows[-1], flush=True)
    head = ["normalizer", "form", "live tiles", "forward", "of queries", "of keys", "all",
            "speed over softmax's", "at least"]
    args.output.write_text(f"""# CUDA: normalizers beside softmax, counted

Virtual GPU, sm_90; commit {commit}; {datetime.date.today()}. No GPU has checked it.

Attention forward and backward, bf16, T {args.length}, one head of 64: millions of PTX instructions that
warps execute, in the forward kernel, the backward kernel of queries, that of keys, and all. Live
tiles: the share of 16 x 64 tiles of visible keys that get any weight. Softmax is the fused path,
"general" softmax by the path of all the others. Ratios are of counts, in place of times.

{table(head, rows)}

`scripts/count_normalizers.py --length {args.length}`
""")
    print(f"written: {args.output}")


if __name__ == "__main__":
    main()
