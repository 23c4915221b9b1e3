"""What mixes the heads of a golden model: the biases that take the place of a prior's.

DAPE: at each (i, j) a network of one hidden layer reads the scores of all heads, unscaled, and the
biases of the base prior.
"""

import torch

NAMES = ["dape"]
SLOPE = 0.01
UNBIASED = ["nope", "rope"]  # bases without biases: x + f(x)


def inputs(mix, H):
    """How many numbers the network reads."""
    both = mix["variant"] in ("concat", "concat_residual") and mix["base"]["name"] not in UNBIASED
    return 2 * H if both else H


def parameter_shapes(mix, H):
    F = mix["hidden"]
    return {"weight1": (F, inputs(mix, H)), "bias1": (F,), "weight2": (H, F), "bias2": (H,)}


def network(theta, u):
    """u (..., inputs) -> (..., H)."""
    v = u @ theta["weight1"].T + theta["bias1"]
    return torch.where(v > 0, v, SLOPE * v) @ theta["weight2"].T + theta["bias2"]


def biases(mix, theta, scores, own):
    """Lists by head of (B, T, T): what is added to t times the score."""
    x, b = torch.stack(scores, -1), torch.stack(own, -1)
    if mix["base"]["name"] in UNBIASED:
        f = network(theta, x)
    else:
        read = {"concat": torch.cat([x, b], -1), "concat_residual": torch.cat([x, b], -1),
                "add_residual": x + b, "bias_only": b}[mix["variant"]]
        f = network(theta, read)
        if mix["variant"] != "concat":
            f = b + f
    return list(f.unbind(-1))
