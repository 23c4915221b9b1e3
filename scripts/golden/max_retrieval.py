"""Writes tests/golden/max_retrieval_<case>.safetensors: small models of the task max_retrieval with
their logits, loss and gradients.

Run by hand, with Debian's torch and numpy:

    /usr/bin/python3 scripts/golden/max_retrieval.py            writes the files
    /usr/bin/python3 scripts/golden/max_retrieval.py --check    compares them with fresh values

The model is one attention over a set, in float64 with gradients from autograd: nothing of rows,
causality or padding. Before a file is written its gradients are checked against central differences,
and its logits against those of the items in another order.

A file holds the parameters under their checkpoint names, `inputs` (B, T) I32 as the task writes them
(query, then items; 2^24 class + number, the query's class is 10; behind a row's items, zeros), `counts`
(B) I32, the items of each row, `targets` (B) I32, `logits` (B, O), `loss` (1), their mean,
`grad.<parameter>` of that, and the case's options as JSON under the metadata key "config".
Parameters are exact in fp32. The features of an item are its priority and one of ten classes, that of the
query is its number; columns of the weights behind them have no gradient.
"""

import argparse
import json
import math
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F

import normalizers
import safetensors_io

WIDTH, HIDDEN, CLASSES, COLUMNS, COUNTS = 16, 12, 10, 16, (9, 4, 1, 12)
ATTENTION = "model.layers.0.self_attn."
ADAPTIVE = {"name": "adaptive", "bias": True, "delta": 1.0, "g": 2.0, "scale_bias": "false"}
SSMAX = {"name": "ssmax", "scale_bias": "auto", "offset": 0, "delta": 0}
NONE = {"name": "none"}
MARGIN = 1e-3


def entmax(alpha, learned=False):
    return {"name": "entmax", "alpha": alpha, "learned": learned}


CASES = {
    "softmax": (NONE, normalizers.SOFTMAX, "gelu_erf"),
    "ssmax": (SSMAX, normalizers.SOFTMAX, "gelu"),
    "asentmax": (ADAPTIVE, entmax(1.5), "gelu_erf"),
    "entmax_4": (NONE, entmax(4.0), "gelu_erf"),
    "entmax_learned": (SSMAX, entmax(1.5, True), "gelu_erf"),
    "topk": (NONE, {"name": "topk", "k": 2, "of": "row"}, "gelu_erf"),
}


def parameter_shapes(scale, normalizer):
    shapes = {}

    def network(name, inputs, outputs):
        shapes[name + ".hidden.weight"], shapes[name + ".hidden.bias"] = (HIDDEN, inputs), (HIDDEN,)
        shapes[name + ".output.weight"], shapes[name + ".output.bias"] = (outputs, HIDDEN), (outputs,)

    network("model.items.mlp", COLUMNS, WIDTH)
    network("model.query.mlp", COLUMNS, WIDTH)
    network("model.answer", WIDTH, CLASSES)
    for name in "qkv":
        shapes[ATTENTION + name + "_proj.weight"] = (WIDTH, WIDTH)
        shapes[ATTENTION + name + "_proj.bias"] = (WIDTH,)
    if scale["name"] == "ssmax":
        shapes[ATTENTION + "scale.s"] = (1,)
    if scale["name"] == "adaptive":
        for name in ("beta", "gamma"):
            shapes[f"{ATTENTION}scale.{name}_weight"] = (1, WIDTH)
            shapes[f"{ATTENTION}scale.{name}_bias"] = (1,)
    if normalizer.get("learned"):
        shapes[ATTENTION + "normalizer.alpha"] = (1,)
    return shapes


def network(p, name, x, kind):
    hidden = x @ p[name + ".hidden.weight"].T + p[name + ".hidden.bias"]
    act = F.gelu(hidden, approximate="tanh" if kind == "gelu" else "none")
    return act @ p[name + ".output.weight"].T + p[name + ".output.bias"]


def temperature(p, scale, n, query):
    of = lambda name: p[ATTENTION + "scale." + name]
    if scale["name"] == "ssmax":
        return of("s")[0] * math.log(n)
    if scale["name"] == "adaptive":
        beta = F.softplus(query @ of("beta_weight")[0] + of("beta_bias")[0])
        gamma = scale["g"] * torch.tanh(query @ of("gamma_weight")[0] + of("gamma_bias")[0])
        return scale["delta"] + beta * math.log(n + 1) ** gamma
    return 1.0


def answer(p, case, row, watch=None):
    """Logits (O) of one query and its items."""
    scale, normalizer, kind = CASES[case]
    number, of_class = [x % 2 ** 24 / 2 ** 24 for x in row], [x >> 24 for x in row]
    n = len(row) - 1
    items, query = torch.zeros(n, COLUMNS).double(), torch.zeros(COLUMNS).double()
    query[0] = number[0]
    for i in range(n):
        items[i, 0], items[i, 1 + of_class[i + 1]] = number[i + 1], 1
    items = network(p, "model.items.mlp", items, kind)
    query = network(p, "model.query.mlp", query, kind)
    linear = lambda name, x: x @ p[f"{ATTENTION}{name}_proj.weight"].T + p[f"{ATTENTION}{name}_proj.bias"]
    z = linear("k", items) @ linear("q", query) / math.sqrt(WIDTH) * temperature(p, scale, n, query)
    theta = {"alpha": p.get(ATTENTION + "normalizer.alpha")}
    weights = normalizers.normalize(normalizer, theta, 0, z, torch.ones(n, dtype=torch.bool))
    if watch is not None:
        watch.append((z.detach(), weights.detach()))
    return network(p, "model.answer", weights @ linear("v", items), kind)


def losses(p, case, rows, targets):
    return torch.stack([F.cross_entropy(answer(p, case, row)[None], torch.tensor([target]))
                        for row, target in zip(rows, targets)])


def is_clear(p, case, rows):
    """No key is near to where it would enter or leave a support."""
    normalizer, seen = CASES[case][1], []
    for row in rows:
        answer(p, case, row, seen)
    for z, weights in seen:
        visible = torch.ones(len(z), dtype=torch.bool)
        if normalizer["name"] == "entmax":
            theta = {"alpha": p.get(ATTENTION + "normalizer.alpha")}
            alpha = float(normalizers.alpha_of(normalizer, theta, 0))
            if normalizers.levels(z, alpha, visible).abs().min() < MARGIN:
                return False
        if normalizer["name"] == "topk" and len(z) > normalizer["k"]:
            falling = z.sort(descending=True).values
            if falling[normalizer["k"] - 1] - falling[normalizer["k"]] < MARGIN:
                return False
    return normalizer == normalizers.SOFTMAX or any(
        0 < int((w > 0).sum()) < len(w) for _, w in seen)


def random_parameter(rng, name, shape):
    leaf = name.split(".")[-1]
    if leaf == "alpha":
        value = rng.normal(-0.4, 0.3, shape)
    elif leaf == "s":
        value = rng.normal(1.0, 0.3, shape)
    elif len(shape) == 1:
        value = rng.normal(0, 0.3, shape)
    else:
        value = rng.normal(0, 1.5 / math.sqrt(shape[1]), shape)
        if ".items." in name and shape[1] == COLUMNS:
            value[:, 11:] = 0
        if ".query." in name and shape[1] == COLUMNS:
            value[:, 1:] = 0
    return torch.from_numpy(value.astype(np.float32).astype(np.float64))


def random_model(case):
    for attempt in range(100):
        rng = np.random.Generator(np.random.PCG64(zlib.crc32(f"max_retrieval {case} {attempt}".encode())))
        shapes = parameter_shapes(*CASES[case][:2])
        p = {name: random_parameter(rng, name, shapes[name]) for name in sorted(shapes)}
        rows = [[10 * 2 ** 24 + int(rng.integers(2 ** 24))] + [
            int(rng.integers(10)) * 2 ** 24 + int(rng.integers(2 ** 24)) for _ in range(n)] for n in COUNTS]
        if is_clear(p, case, rows):
            return rng, p, rows
    raise AssertionError(f"{case}: 100 models, none of them clear")


def check_gradients(case, rng, p, rows, targets, gradients, h=1e-6):
    for name, gradient in gradients.items():
        flat, grad = p[name].detach().reshape(-1), gradient.reshape(-1)
        entries = {int(grad.abs().argmax()), *rng.integers(0, len(flat), 2).tolist()}
        for entry in entries:
            found = []
            for step in (h, -h):
                moved = flat.clone()
                moved[entry] += step
                with torch.no_grad():
                    found.append(losses({**p, name: moved.view(gradient.shape)}, case, rows, targets).mean())
            difference = (found[0] - found[1]) / (2 * h)
            assert abs(difference - grad[entry]) < 1e-8 + 1e-6 * abs(grad[entry]), (
                f"{case}: {name}[{entry}] gradient {grad[entry]}, differences {difference}")


def make(case):
    """({name: array}, metadata) of one case, checked."""
    rng, p, rows = random_model(case)
    targets = [max(row[1:], key=lambda x: x % 2 ** 24) >> 24 for row in rows]
    for x in p.values():
        x.requires_grad_()
    loss = losses(p, case, rows, targets).mean()
    gradients = dict(zip(p, torch.autograd.grad(loss, list(p.values()))))
    check_gradients(case, rng, p, rows, targets, gradients)
    with torch.no_grad():
        logits = torch.stack([answer(p, case, row) for row in rows])
        for row, expected in zip(rows, logits):
            other = [row[0], *rng.permutation(row[1:]).tolist()]
            assert torch.allclose(answer(p, case, other), expected, rtol=0, atol=1e-12), case
    inputs = np.zeros((len(rows), 1 + max(COUNTS)), np.int32)
    for b, row in enumerate(rows):
        inputs[b, :len(row)] = row
    tensors = {name: x.detach().numpy() for name, x in p.items()}
    tensors |= {"grad." + name: x.numpy() for name, x in gradients.items()}
    tensors |= {"inputs": inputs, "counts": np.array(COUNTS, np.int32),
                "targets": np.array(targets, np.int32), "logits": logits.numpy(),
                "loss": loss.detach().numpy().reshape(1)}
    assert all(np.isfinite(x).all() for x in tensors.values()), f"{case}: not finite"
    scale, normalizer, kind = CASES[case]
    config = {"width": WIDTH, "hidden": HIDDEN, "activation": kind, "scale": scale, "normalizer": normalizer}
    return tensors, {"config": json.dumps(config, sort_keys=True)}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Golden models of max_retrieval.")
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    for case in CASES:
        tensors, metadata = make(case)
        path = options.out / f"max_retrieval_{case}.safetensors"
        if options.check:
            verdict = "same" if safetensors_io.same(path, tensors, metadata) else "DIFFERS"
            failed += verdict != "same"
        else:
            data = safetensors_io.encode(tensors, metadata)
            path.write_bytes(data)
            verdict = f"{len(data)} bytes"
        print(f"{case:20} loss {tensors['loss'][0]:.12f}  {verdict}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
