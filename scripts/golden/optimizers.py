"""Writes tests/golden/optimizers.safetensors: ten steps each of RAdam and of AdamW.

Run by hand, with Debian's torch and numpy:

    /usr/bin/python3 scripts/golden/optimizers.py            writes the file
    /usr/bin/python3 scripts/golden/optimizers.py --check    compares it with fresh values instead

One tensor of 257 elements, float64, the same initial weights and gradients for both:
`initial` (257), `gradients` (10, 257), and per optimizer `<name>.weights` (10, 257), the weights
after each step, `<name>.m` and `<name>.v` (257), the moments after the last. The settings are JSON
under the metadata key "config". Inputs are exact in fp32. Both optimizers decay decoupled,
w -= lr wd w before the step. Before anything is written torch.optim is made to agree.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np
import torch

import safetensors_io

STEPS, SIZE = 10, 257
CONFIG = {"lr": 0.01, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}


def moments(m, v, g):
    beta1, beta2 = CONFIG["betas"]
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def radam_step(w, m, v, step):
    """The move of step 1, 2, ...: without the adaptive term until rho > 5 (step 6 at beta2 0.95).

    epsilon is added to sqrt(v) before the bias correction of v, as PyTorch does.
    """
    beta1, beta2 = CONFIG["betas"]
    m_hat = m / (1 - beta1 ** step)
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * beta2 ** step / (1 - beta2 ** step)
    if rho <= 5:
        return w - CONFIG["lr"] * m_hat
    r = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    adaptive = math.sqrt(1 - beta2 ** step) / (np.sqrt(v) + CONFIG["eps"])
    return w - CONFIG["lr"] * r * m_hat * adaptive


def adamw_step(w, m, v, step):
    """The move of step 1, 2, ...: epsilon is added after the bias correction of v."""
    beta1, beta2 = CONFIG["betas"]
    m_hat, v_hat = m / (1 - beta1 ** step), v / (1 - beta2 ** step)
    return w - CONFIG["lr"] * m_hat / (np.sqrt(v_hat) + CONFIG["eps"])


def run(move, initial, gradients):
    w, m, v, weights = initial, np.zeros(SIZE), np.zeros(SIZE), []
    for step, g in enumerate(gradients, 1):
        w = w - CONFIG["lr"] * CONFIG["weight_decay"] * w
        m, v = moments(m, v, g)
        w = move(w, m, v, step)
        weights.append(w)
    return np.stack(weights), m, v


def torch_weights(name, initial, gradients):
    """The same by torch.optim. Its RAdam adds weight decay to the gradient, so that there the
    weights are decayed by hand and torch's own decay is off."""
    w = torch.from_numpy(initial.copy()).requires_grad_()
    settings = {"lr": CONFIG["lr"], "betas": tuple(CONFIG["betas"]), "eps": CONFIG["eps"]}
    if name == "radam":
        optimizer = torch.optim.RAdam([w], weight_decay=0, **settings)
    else:
        optimizer = torch.optim.AdamW([w], weight_decay=CONFIG["weight_decay"], **settings)
    weights = []
    for g in gradients:
        if name == "radam":
            w.data.mul_(1 - CONFIG["lr"] * CONFIG["weight_decay"])
        w.grad = torch.from_numpy(g.copy())
        optimizer.step()
        weights.append(w.detach().numpy().copy())
    state = optimizer.state[w]
    return np.stack(weights), state["exp_avg"].numpy(), state["exp_avg_sq"].numpy()


def make():
    rng = np.random.Generator(np.random.PCG64(2024))
    initial = rng.normal(0, 0.5, SIZE)
    gradients = rng.normal(0, 1, (STEPS, SIZE)) * 10.0 ** rng.uniform(-4, 1, SIZE)
    gradients[:, :8] = 0             # never a gradient: decay only
    gradients[:7, 8:16] = 0          # the first one after the rectified steps have begun
    gradients[:, 16:24] *= 1e-8      # small enough for the place of epsilon to show
    exact = {"initial": initial, "gradients": gradients}
    tensors = {name: x.astype(np.float32).astype(np.float64) for name, x in exact.items()}
    for name, move in (("radam", radam_step), ("adamw", adamw_step)):
        values = run(move, tensors["initial"], tensors["gradients"])
        theirs = torch_weights(name, tensors["initial"], tensors["gradients"])
        for key, ours, other in zip(("weights", "m", "v"), values, theirs):
            assert np.allclose(ours, other, rtol=1e-12, atol=1e-15), f"{name}.{key} is not torch's"
            tensors[f"{name}.{key}"] = ours
    return tensors, {"config": json.dumps(CONFIG, sort_keys=True)}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Golden optimizer steps.")
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    tensors, metadata = make()
    path = options.out / "optimizers.safetensors"
    if options.check:
        agree = safetensors_io.same(path, tensors, metadata)
        print(f"{path}: {'same' if agree else 'DIFFERS'}")
        sys.exit(0 if agree else 1)
    data = safetensors_io.encode(tensors, metadata)
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main()
