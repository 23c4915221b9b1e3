#!/usr/bin/env python3
"""The peers of build/bench/cuda in PyTorch, one line of JSON per measurement, in the same shape.

  scripts/gpu_peer.py attention [--length N ...] [--head-dim D ...] [--tokens N] [--heads H]

form none: scaled_dot_product_attention held to FlashAttention. form table: FlexAttention, compiled,
whose score is the product plus a learnable bias by head and distance. Shapes, causal mask and bf16
are those of bench/cuda; the time of a backward pass is that of forward and backward less forward.
"""

import argparse
import json
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention


def time_of(work, runs=7):
    """The median seconds of one call, of timings of so many calls that each takes 20 ms or more."""

    def timed(calls):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    timed(2)
    calls = int(min(1000, max(1, 0.02 / timed(3))))
    return statistics.median(timed(calls) for _ in range(runs))


def causal(b, h, i, j):
    return i >= j


def measure(form, batch, length, heads, dim):
    shape = (batch, heads, length, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    gradient = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    if form == "none":

        def forward():
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        table = (-0.01 * torch.arange(length, device="cuda", dtype=torch.float32)).repeat(heads, 1)
        table.requires_grad_(True)
        mask = create_block_mask(causal, None, None, length, length, device="cuda")
        compiled = torch.compile(flex_attention)

        def forward():
            return compiled(q, k, v, block_mask=mask,
                            score_mod=lambda s, b, h, i, j: s + table[h, i - j])

    def both():
        forward().backward(gradient)

    one = time_of(forward)
    two = time_of(both)
    pairs = batch * heads * dim * length * (length + 1)
    print(json.dumps({"what": "attention",
                      "program": f"PyTorch {torch.__version__} "
                                 + ("flash" if form == "none" else "flex"),
                      "form": form, "B": batch, "T": length, "H": heads, "D": dim,
                      "forward_ms": 1e3 * one, "backward_ms": 1e3 * (two - one),
                      "forward_flops": 2 * pairs / one, "both_flops": 7 * pairs / two}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["attention"])
    parser.add_argument("--length", type=int, action="append")
    parser.add_argument("--head-dim", type=int, action="append")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--heads", type=int, default=12)
    arguments = parser.parse_args()
    lengths = arguments.length or [512, 1024, 2048, 4096, 8192, 16384]
    for dim in arguments.head_dim or [64, 48]:
        for form in ("none", "table"):
            for length in lengths:
                batch = max(1, arguments.tokens // length)
                try:
                    measure(form, batch, length, arguments.heads, dim)
                except Exception as error:  # a shape that a peer refuses is a result too
                    print(json.dumps({"what": "attention", "form": form, "T": length, "D": dim,
                                      "error": str(error)[:300]}), flush=True)


if __name__ == "__main__":
    main()
