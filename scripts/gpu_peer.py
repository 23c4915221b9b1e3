#!/usr/bin/env python3
"""The peers of build/bench/cuda in PyTorch, one line of JSON per measurement, in the same shape.

  scripts/gpu_peer.py attention [--length N ...] [--head-dim D ...] [--tokens N] [--heads H]
  scripts/gpu_peer.py step --config CONFIG [--batch B] [--length T] [--micro-batches N]

attention, form none: scaled_dot_product_attention held to FlashAttention. form table: FlexAttention,
compiled, whose score is the product plus a learnable bias by head and distance. Shapes, causal mask and bf16
are those of bench/cuda; the time of a backward pass is that of forward and backward less forward.

step: the same decoder (RMSNorm, SwiGLU, a learnable BAM prior and a learnable scale by row), the
whole of it under torch.compile, FlexAttention, bf16 by autocast, fused AdamW, clipped gradients.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import cross_entropy, rms_norm, scaled_dot_product_attention, silu


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
        torch._dynamo.reset()  # else a second shape is compiled for sizes that vary
        compiled = torch.compile(flex_attention, dynamic=False)

        def forward():
            return compiled(q, k, v, block_mask=mask,
                            score_mod=lambda s, b, h, i, j: s + table[h, i - j])

    inputs = (q, k, v) if form == "none" else (q, k, v, table)

    def both():
        torch.autograd.grad(forward(), inputs, gradient)

    one = time_of(forward)
    two = time_of(both)
    pairs = batch * heads * dim * length * (length + 1)
    print(json.dumps({"what": "attention",
                      "program": f"PyTorch {torch.__version__} "
                                 + ("flash" if form == "none" else "flex"),
                      "form": form, "B": batch, "T": length, "H": heads, "D": dim,
                      "forward_ms": 1e3 * one, "backward_ms": 1e3 * (two - one),
                      "forward_flops": 2 * pairs / one, "both_flops": 7 * pairs / two}), flush=True)


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.Parameter(torch.ones(width))
        self.norm2 = nn.Parameter(torch.ones(width))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.theta_alpha = nn.Parameter(torch.linspace(-6, -1, heads))
        self.theta_beta = nn.Parameter(torch.ones(heads))
        self.s = nn.Parameter(torch.full((heads,), 0.43))

    def forward(self, x, distances, log_n, mask):
        batch, length, width = x.shape
        # b = -exp(ta) d^tb at (h, d); t = s log n at (h, i).
        table = -torch.exp(self.theta_alpha)[:, None] * distances ** self.theta_beta[:, None]
        scale = self.s[:, None] * log_n

        def score(z, b, h, i, j):
            return z * scale[h, i] + table[h, i - j]

        normed = rms_norm(x, (width,), self.norm1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(normed).chunk(3, dim=-1))
        out = flex_attention(q, k, v, score_mod=score, block_mask=mask)
        x = x + self.out(out.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(rms_norm(x, (width,), self.norm2)).chunk(2, dim=-1)
        return x + self.down(silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        width = model["width"]
        self.embedding = nn.Embedding(model["vocab"], width)
        self.blocks = nn.ModuleList(Block(width, model["heads"], model["mlp"]["hidden"])
                                    for _ in range(model["layers"]))
        self.norm = nn.Parameter(torch.ones(width))
        self.head = nn.Linear(width, model["vocab"], bias=False)

    def forward(self, tokens, targets, distances, log_n, mask):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, distances, log_n, mask)
        logits = self.head(rms_norm(x, x.shape[-1:], self.norm))
        return cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def measure_step(config, batch, length, micro_batches):
    device, model = "cuda", config["model"]
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    decoder = Decoder(model).to(device)
    run = torch.compile(decoder, dynamic=False)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=1e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    tokens = torch.randint(model["vocab"], (batch, length + 1), device=device)
    distances = torch.arange(length, device=device).float().clamp(min=1e-6)
    log_n = torch.arange(1, length + 1, device=device).float().log()
    mask = create_block_mask(causal, None, None, length, length, device=device)
    losses = []

    def step():
        for _ in range(micro_batches):
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = run(tokens[:, :-1], tokens[:, 1:], distances, log_n, mask)
            (loss / micro_batches).backward()
        nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses[:] = [loss]

    seconds = time_of(step, runs=5)
    n = batch * length * micro_batches
    print(json.dumps({"what": "step", "program": f"PyTorch {torch.__version__} compiled, flex",
                      "config": config["name"], "B": batch, "T": length,
                      "micro_batches": micro_batches, "loss": losses[0].item(),
                      "step_ms": 1e3 * seconds, "tokens_per_second": n / seconds,
                      "memory_bytes": torch.cuda.max_memory_allocated()}),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["attention", "step"])
    parser.add_argument("--config", help="of step: a run configuration")
    parser.add_argument("--batch", type=int, default=64, help="of step: of a micro-batch")
    parser.add_argument("--micro-batches", type=int, default=4, help="of step")
    parser.add_argument("--length", type=int, action="append")
    parser.add_argument("--head-dim", type=int, action="append")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--heads", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.what == "step":
        if not arguments.config:
            parser.error("step needs --config")
        for length in arguments.length or [512]:
            config = json.loads(Path(arguments.config).read_text())
            if "base" in config:
                parser.error("--config has a base; write it whole with bamtrain train --print-config")
            measure_step(config, arguments.batch, length, arguments.micro_batches)
        return
    lengths = arguments.length or [512, 1024, 4096, 16384]
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
