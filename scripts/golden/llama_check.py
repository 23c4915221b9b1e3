"""Shows that a checkpoint with rotary positions is a Llama: compares bamtrain's logits with a plain
PyTorch Llama's in fp32, and fails where they differ by more than 1e-4.

Run by hand, with Debian's torch and numpy:

    llama_check.py CHECKPOINT_DIR LOGITS.safetensors    exit 0 if they agree, 1 if not
    llama_check.py --transformers CHECKPOINT_DIR LOGITS.safetensors
                                                        the same with LlamaForCausalLM
    llama_check.py --self-test [--transformers]         on made-up data, right and wrong

CHECKPOINT_DIR holds model.safetensors (Hugging Face's Llama names, fp32) and state.json with the
resolved run config under "config". LOGITS.safetensors holds `tokens` (B, T) I32 and `logits`
(B, T, V) F32, each row one document. The code below knows Hugging Face's Llama and nothing of the
other scripts here.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch

import safetensors_io

TOLERANCE = 1e-4


class Refused(Exception):
    """The input is not what a Llama can be compared on."""


def llama_settings(config):
    """The model section of a run config as a Llama's settings, or Refused."""
    model = config["model"]
    choice = model["attention"]
    if isinstance(choice["prior"], list):
        raise Refused("model.attention.prior is a list, a Llama has rope in every layer")
    needed = {
        "model.attention.prior.name": (choice["prior"]["name"], "rope"),
        "model.attention.scale.name": (choice["scale"]["name"], "none"),
        "model.attention.normalizer.name": (
            choice.get("normalizer", {"name": "softmax"})["name"], "softmax"),
        "model.attention.window": (choice.get("window") or 0, 0),
        "model.norm.kind": (model["norm"]["kind"], "rmsnorm"),
        "model.mlp.kind": (model["mlp"]["kind"], "swiglu"),
        "model.bias": (model["bias"], False),
        "model.norm_position": (model.get("norm_position", "pre"), "pre"),
        "model.embed_scale": (model.get("embed_scale", False), False),
        "model.head_dim": (model.get("head_dim") or model["width"] // model["heads"],
                           model["width"] // model["heads"]),
    }
    for key, (found, expected) in needed.items():
        if found != expected:
            raise Refused(f"{key} is {found}, a Llama has {expected}")
    return {"vocab": model["vocab"], "width": model["width"], "layers": model["layers"],
            "heads": model["heads"], "kv_heads": model["kv_heads"],
            "hidden": model["mlp"]["hidden"], "eps": model["norm"]["eps"],
            "theta": float(choice["prior"]["theta"]), "tied": model["tied"]}


def require_single_documents(config, tokens):
    start = config["data"].get("document_start")
    if config["model"]["attention"].get("document_mask") and (tokens[:, 1:] == start).any():
        raise Refused(f"a row of tokens holds a second document (token {start}), which the model "
                      "masks and a Llama would not: write logits of single documents")


class RMSNorm(torch.nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Attention(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s, self.head = s, s["width"] // s["heads"]
        rows = {"q_proj": s["width"], "k_proj": self.head * s["kv_heads"],
                "v_proj": self.head * s["kv_heads"], "o_proj": s["width"]}
        for name, count in rows.items():
            setattr(self, name, torch.nn.Linear(s["width"], count, bias=False))

    def split(self, x, heads):
        return x.unflatten(-1, (heads, self.head)).transpose(1, 2)  # (B, heads, T, D)

    def forward(self, x, cos, sin, hidden):
        def rotated(y):
            first, second = y.chunk(2, -1)
            return y * cos + torch.cat((-second, first), -1) * sin

        q = rotated(self.split(self.q_proj(x), self.s["heads"]))
        k = rotated(self.split(self.k_proj(x), self.s["kv_heads"]))
        v = self.split(self.v_proj(x), self.s["kv_heads"])
        group = self.s["heads"] // self.s["kv_heads"]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.head)
        weights = (scores + hidden).softmax(-1)
        return self.o_proj(torch.einsum("bhij,bhjd->bihd", weights, v).flatten(2))


class MLP(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = torch.nn.Linear(s["width"], s["hidden"], bias=False)
        self.up_proj = torch.nn.Linear(s["width"], s["hidden"], bias=False)
        self.down_proj = torch.nn.Linear(s["hidden"], s["width"], bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp = Attention(s), MLP(s)
        self.input_layernorm = RMSNorm(s["width"], s["eps"])
        self.post_attention_layernorm = RMSNorm(s["width"], s["eps"])

    def forward(self, x, cos, sin, hidden):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, hidden)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(torch.nn.Module):
    """Its state_dict has Hugging Face's names, so that a strict load checks those too."""

    def __init__(self, s):
        super().__init__()
        self.s, self.model = s, torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(s["vocab"], s["width"])
        self.model.layers = torch.nn.ModuleList(Layer(s) for _ in range(s["layers"]))
        self.model.norm = RMSNorm(s["width"], s["eps"])
        self.lm_head = torch.nn.Linear(s["width"], s["vocab"], bias=False)

    def forward(self, tokens):
        T, D = tokens.shape[1], self.s["width"] // self.s["heads"]
        frequency = 1.0 / self.s["theta"] ** (torch.arange(0, D, 2, dtype=torch.float64) / D)
        angle = torch.outer(torch.arange(T, dtype=torch.float64), frequency).repeat(1, 2)
        cos, sin = angle.cos().float(), angle.sin().float()
        hidden = torch.full((T, T), -math.inf).triu(1)
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, cos, sin, hidden)
        return self.lm_head(self.model.norm(x))


def transformers_llama(s, positions):
    """Hugging Face's own model of these settings; needs the package."""
    import transformers
    rotary = {"rope_theta": s["theta"]}
    if int(transformers.__version__.split(".")[0]) >= 5:
        rotary = {"rope_parameters": {"rope_type": "default", **rotary}}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=s["vocab"], hidden_size=s["width"], num_hidden_layers=s["layers"],
        num_attention_heads=s["heads"], num_key_value_heads=s["kv_heads"],
        intermediate_size=s["hidden"], rms_norm_eps=s["eps"], max_position_embeddings=positions,
        tie_word_embeddings=s["tied"], attention_bias=False, **rotary))
    return model.eval(), lambda tokens: model(tokens).logits


def reference_logits(folder, tokens, use_transformers):
    """(B, T, V) fp32 logits of the checkpoint in `folder`, read as a Llama."""
    config = json.loads((folder / "state.json").read_text())["config"]
    s = llama_settings(config)
    require_single_documents(config, tokens)
    tensors, _ = safetensors_io.read(folder / "model.safetensors")
    weights = {name: torch.from_numpy(x) for name, x in tensors.items()}
    if s["tied"]:
        if "lm_head.weight" in weights:
            raise Refused("the config says tied, but the file has lm_head.weight")
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    if use_transformers:
        model, forward = transformers_llama(s, tokens.shape[1])
    else:
        model = Llama(s)
        forward = model
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        return forward(torch.from_numpy(tokens).long()).numpy()


def check(folder, logits_path, use_transformers=False):
    """Prints the largest difference; returns whether it is within the tolerance."""
    given, _ = safetensors_io.read(logits_path)
    expected = reference_logits(folder, given["tokens"], use_transformers)
    if given["logits"].shape != expected.shape:
        raise Refused(f"logits are {given['logits'].shape}, the model's {expected.shape}")
    difference = float(np.abs(given["logits"].astype(np.float64) - expected).max())
    agree = difference <= TOLERANCE  # false for NaN
    print(f"max abs difference {difference:.3e} over {expected.size} logits of size up to "
          f"{np.abs(expected).max():.2f}, tolerance {TOLERANCE:.0e}: {'ok' if agree else 'FAILED'}")
    return agree


def scalar_logits(s, w, tokens):
    """One row, position by position with a growing cache, float64, rotation as complex numbers:
    another way to the same numbers, for the self-test."""
    H, group, D = s["heads"], s["heads"] // s["kv_heads"], s["width"] // s["heads"]
    w = {name: x.astype(np.float64) for name, x in w.items()}
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    cache = [([], []) for _ in range(s["layers"])]

    def norm(name, x):
        return x / math.sqrt(x @ x / len(x) + s["eps"]) * w[name]

    def rotated(x, position):
        turn = np.exp(1j * position * np.array([s["theta"] ** (-2 * c / D) for c in range(D // 2)]))
        y = (x[:D // 2] + 1j * x[D // 2:]) * turn
        return np.concatenate([y.real, y.imag])

    rows = []
    for position, token in enumerate(tokens):
        x = w["model.embed_tokens.weight"][token]
        for layer, (keys, values) in enumerate(cache):
            name = f"model.layers.{layer}."
            y = norm(name + "input_layernorm.weight", x)
            q, k, v = ((w[f"{name}self_attn.{p}_proj.weight"] @ y).reshape(-1, D) for p in "qkv")
            keys.append([rotated(one, position) for one in k])
            values.append(v)
            out = []
            for h in range(H):
                score = np.array([rotated(q[h], position) @ key[h // group] for key in keys])
                weight = np.exp((score - score.max()) / math.sqrt(D))
                out.append(sum(a * value[h // group] for a, value in zip(weight, values))
                           / weight.sum())
            x = x + w[name + "self_attn.o_proj.weight"] @ np.concatenate(out)
            y = norm(name + "post_attention_layernorm.weight", x)
            gate = w[name + "mlp.gate_proj.weight"] @ y
            up = w[name + "mlp.up_proj.weight"] @ y
            x = x + w[name + "mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)
        rows.append(head @ norm("model.norm.weight", x))
    return np.array(rows)


def self_test(use_transformers):
    """A made-up checkpoint with logits from scalar_logits is accepted, damaged ones are not."""
    rng = np.random.default_rng(5)
    for tied, theta in ((False, 10000.0), (True, 500000.0)):
        config = {"model": {"vocab": 97, "width": 48, "layers": 3, "heads": 6, "kv_heads": 2,
                            "mlp": {"kind": "swiglu", "hidden": 80}, "tied": tied, "bias": False,
                            "norm": {"kind": "rmsnorm", "eps": 1e-5},
                            "attention": {"prior": {"name": "rope", "theta": theta},
                                          "scale": {"name": "none"}, "window": 0,
                                          "document_mask": True}},
                  "data": {"sequence_length": 40, "document_start": 1}}
        s = llama_settings(config)
        shapes = {name: x.shape for name, x in Llama(s).state_dict().items()}
        weights = {name: (rng.normal(1, 0.2, shape) if len(shape) == 1 else
                          rng.normal(0, shape[1] ** -0.5, shape)).astype(np.float32)
                   for name, shape in shapes.items() if not (tied and name == "lm_head.weight")}
        tokens = rng.integers(2, 97, (2, 40)).astype(np.int32)
        tokens[:, 0] = 1
        logits = np.stack([scalar_logits(s, weights, row) for row in tokens]).astype(np.float32)

        def verdict(weights=weights, config=config, logits=logits, tokens=tokens):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                (folder / "model.safetensors").write_bytes(safetensors_io.encode(weights, {}))
                (folder / "state.json").write_text(json.dumps({"config": config}))
                given = folder / "logits.safetensors"
                given.write_bytes(
                    safetensors_io.encode({"tokens": tokens, "logits": logits}, {}))
                try:
                    return "accepted" if check(folder, given, use_transformers) else "rejected"
                except Refused as error:
                    print(f"refused: {error}")
                    return "refused"

        assert verdict() == "accepted"
        # q's rows paired as (2c, 2c + 1) instead of (c, c + D/2).
        D = 48 // 6
        swap = np.concatenate([np.arange(0, D, 2), np.arange(1, D, 2)])
        name = "model.layers.1.self_attn.q_proj.weight"
        swapped = weights[name].reshape(6, D, 48)[:, swap].reshape(48, 48)
        assert verdict(weights={**weights, name: swapped}) == "rejected"
        moved = logits.copy()
        moved[1, 39, 96] += 3e-4
        assert verdict(logits=moved) == "rejected"
        moved[1, 39, 96] = np.nan
        assert verdict(logits=moved) == "rejected"
        assert verdict(logits=logits[:, :, :96].copy()) == "refused"
        second = tokens.copy()
        second[0, 7] = 1
        assert verdict(tokens=second) == "refused"
        other = json.loads(json.dumps(config))
        other["model"]["attention"]["prior"] = {"name": "alibi"}
        assert verdict(config=other) == "refused"
    print("self-test passed")


def main():
    parser = argparse.ArgumentParser(description="Reads a rope checkpoint as a Llama.")
    parser.add_argument("checkpoint", type=pathlib.Path, nargs="?")
    parser.add_argument("logits", type=pathlib.Path, nargs="?")
    parser.add_argument("--transformers", action="store_true", help="use LlamaForCausalLM")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test(options.transformers)
        return
    if options.logits is None:
        parser.error("expected CHECKPOINT_DIR LOGITS.safetensors")
    try:
        agree = check(options.checkpoint, options.logits, options.transformers)
    except Refused as error:
        print(f"refused: {error}")
        agree = False
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
