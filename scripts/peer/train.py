#!/usr/bin/env python3
"""Trains the model of a run configuration of bamtrain with plain PyTorch, on a CPU, in fp32.

  scripts/peer/train.py init --config FILE --weights FOLDER
  scripts/peer/train.py train --config FILE --weights FOLDER --output FILE.jsonl [--steps N] [options]

init writes initial values as a Hugging Face Llama, which bamtrain reads by init_from.folder: both
programs start from the same file. train reads it, and bamdata's shards in the order of
data.shuffle false, and writes a line of JSON per step: loss, gradient norm, learning rate,
seconds and, of all threads together, processor seconds.
What is not read here has bamtrain's default, or is refused.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

MAGIC = {20240520: "<u2", 20240801: "<u4"}  # of a shard: the type of its ids


def check(config):
    """Refuses what this script would compute otherwise than bamtrain."""
    model = config["model"]
    found = {"model.mlp.kind": model["mlp"]["kind"], "model.norm.kind": model["norm"]["kind"],
             "prior": model["attention"]["prior"]["name"], "model.init": model["init"],
             "model.bias": model["bias"], "data.shuffle": config["data"]["shuffle"],
             "optimizer.name": config["optimizer"]["name"],
             "schedule.name": config["schedule"]["name"],
             "train.precision": config["train"]["precision"]}
    expected = {"model.mlp.kind": "swiglu", "model.norm.kind": "rmsnorm", "prior": "rope",
                "model.init": "gpt2", "model.bias": False, "data.shuffle": False,
                "optimizer.name": "adamw", "schedule.name": "cosine", "train.precision": "fp32"}
    for key, value in expected.items():
        if found[key] != value:
            sys.exit(f"train.py: {key}: expected {value}, found {found[key]}")
    known = {"vocab", "width", "layers", "heads", "mlp", "norm", "tied", "bias", "init", "attention"}
    beside = (set(model) - known | set(model["attention"]) - {"prior"}
              | set(model["attention"]["prior"]) - {"name", "theta"})
    if beside:
        sys.exit(f"train.py: model: expected no {', '.join(sorted(beside))}")


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))


def rotate(x, cos, sin):
    """Rotary embedding of (B, H, T, D), pairs (c, c + D/2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        width, eps = model["width"], model["norm"]["eps"]
        self.input_layernorm = nn.RMSNorm(width, eps)
        self.self_attn = Attention(width, model["heads"])
        self.post_attention_layernorm = nn.RMSNorm(width, eps)
        self.mlp = Mlp(width, model["mlp"]["hidden"])

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Modules are named as in Hugging Face's Llama, and so are the tensors."""

    def __init__(self, config):
        super().__init__()
        model, T = config["model"], config["data"]["sequence_length"]
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(model["vocab"], model["width"])
        self.model.layers = nn.ModuleList(Block(model) for _ in range(model["layers"]))
        self.model.norm = nn.RMSNorm(model["width"], model["norm"]["eps"])
        if not model["tied"]:
            self.lm_head = nn.Linear(model["width"], model["vocab"], bias=False)
        self.tied = model["tied"]
        D = model["width"] // model["heads"]
        frequency = model["attention"]["prior"]["theta"] ** (-2 * torch.arange(D // 2).double() / D)
        angle = torch.arange(T).double()[:, None] * frequency
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, tokens, targets):
        """The sum of the tokens' losses."""
        x = self.model.embed_tokens(tokens)
        for block in self.model.layers:
            x = block(x, self.cos, self.sin)
        head = self.model.embed_tokens.weight if self.tied else self.lm_head.weight
        logits = F.linear(self.model.norm(x), head)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def initialize(config, folder):
    """Initial values of model.init gpt2, as a Llama's folder."""
    model, generator = config["model"], torch.Generator().manual_seed(config["seed"])
    tensors = {}
    for name, value in Decoder(config).state_dict().items():
        residual = name.endswith(("o_proj.weight", "down_proj.weight"))
        std = 0.02 * ((2 * model["layers"]) ** -0.5 if residual else 1)
        if value.dim() == 1:
            tensors[name] = torch.ones_like(value)
        else:
            tensors[name] = torch.empty_like(value).normal_(0, std, generator=generator)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "vocab_size": model["vocab"], "hidden_size": model["width"],
        "intermediate_size": model["mlp"]["hidden"], "num_hidden_layers": model["layers"],
        "num_attention_heads": model["heads"], "num_key_value_heads": model["heads"],
        "head_dim": model["width"] // model["heads"], "rms_norm_eps": model["norm"]["eps"],
        "rope_theta": model["attention"]["prior"]["theta"], "rope_scaling": None,
        "max_position_embeddings": config["data"]["sequence_length"],
        "tie_word_embeddings": model["tied"], "attention_bias": False, "mlp_bias": False,
        "dtype": "float32"}, indent=2) + "\n")


class Windows:
    """Windows of T + 1 tokens that overlap by one, shard after shard, over and over."""

    def __init__(self, folder, length):
        self.shards, self.length = [], length
        for path in sorted(pathlib.Path(folder).glob("*.bin")):
            magic, _, tokens = np.fromfile(path, "<i4", 3)
            ids = np.memmap(path, MAGIC[int(magic)], "r", offset=1024, shape=int(tokens))
            self.shards += [(ids, begin) for begin in range(0, len(ids) - length, length)]

    def __len__(self):
        return len(self.shards)

    def read(self, first, count):
        rows = []
        for number in range(first, first + count):
            ids, begin = self.shards[number % len(self)]
            rows.append(ids[begin:begin + self.length + 1].astype(np.int64))
        windows = torch.from_numpy(np.stack(rows))
        return windows[:, :-1], windows[:, 1:]


def rate_factor(config, step):
    """The learning rate of a step, counted from 0, over the peak."""
    s, steps = config["schedule"], config["train"]["steps"]
    if step < s["warmup_steps"]:
        return (step + 1) / s["warmup_steps"]
    progress = (step - s["warmup_steps"]) / max(1, steps - s["warmup_steps"])
    return s["min_ratio"] + (1 - s["min_ratio"]) * 0.5 * (1 + math.cos(math.pi * progress))


def train(config, args, out):
    torch.set_num_threads(args.threads)
    decoder, o = Decoder(config), config["optimizer"]
    decoder.load_state_dict(load_file(args.weights / "model.safetensors"))
    run = torch.compile(decoder, dynamic=False) if args.compile else decoder
    parameters = list(decoder.parameters())
    matrices = [p for p in parameters if p.dim() > 1]  # embeddings too; norms have no decay
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": o["weight_decay"]},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
        lr=o["lr"], betas=tuple(o["betas"]), eps=o["eps"], fused=True)
    T, tokens = config["data"]["sequence_length"], config["train"]["tokens_per_step"]
    micro_batch = args.micro_batch or config["train"]["micro_batch"]
    windows = Windows(config["data"]["train"], T)
    print(json.dumps({"torch": torch.__version__, "threads": args.threads, "compile": args.compile,
                      "micro_batch": micro_batch, "windows": len(windows),
                      "parameters": sum(p.numel() for p in parameters)}), file=out, flush=True)
    per_step = tokens // T
    if per_step % micro_batch != 0:
        sys.exit(f"train.py: --micro-batch: expected a divisor of {per_step}, found {micro_batch}")
    for step in range(args.steps or config["train"]["steps"]):
        began, worked = time.perf_counter(), time.process_time()
        loss = 0.0
        for first in range(step * per_step, (step + 1) * per_step, micro_batch):
            part = run(*windows.read(first, micro_batch)) / tokens
            part.backward()
            loss += part.item()
        gradients = [p.grad for p in parameters]
        # In fp64 and, where it clips, by norm itself: clip_grad_norm_ adds up in fp32 (4e-5 less here)
        # and divides by norm + 1e-6.
        norm = math.sqrt(sum(torch.linalg.vector_norm(g, dtype=torch.float64).item() ** 2
                             for g in gradients))
        if norm > o["clip"]:
            torch._foreach_mul_(gradients, o["clip"] / norm)
        lr = o["lr"] * rate_factor(config, step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()
        print(json.dumps({"step": step + 1, "loss": loss, "grad_norm": norm, "lr": lr,
                          "seconds": time.perf_counter() - began,
                          "processor_seconds": time.process_time() - worked}), file=out, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["init", "train"])
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="folder of a Llama")
    parser.add_argument("--output", type=pathlib.Path, help="of train: FILE.jsonl")
    parser.add_argument("--steps", type=int, help="of train: end after so many; the schedule stays")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--micro-batch", type=int, help="sequences; default: the configuration's")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    args = parser.parse_args()
    config = json.loads(args.config.read_text())
    check(config)
    if args.what == "init":
        initialize(config, args.weights)
        return
    if not args.output:
        parser.error("train needs --output")
    with args.output.open("w") as out:
        train(config, args, out)


if __name__ == "__main__":
    main()
