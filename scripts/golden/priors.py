"""What the golden models know of each prior that adds a bias to the logits: formula and parameters.

A prior of distance is all here. models.py gives one that none of its cases is about a case with
default options.
"""

import math

import torch
import torch.nn.functional as F

BAM_EPS = 1e-5
BAM_FLOOR = -1e4  # b is bounded below here, with zero gradient where the bound holds
THETAS = ["theta_alpha", "theta_beta", "theta_mu"]

# {prior: {parameter: shape}} of a layer with H heads of D channels, width C and the prior's options.
PARAMETERS = {
    "alibi": lambda H, C, *_: {},
    "nape": lambda H, C, *_: {},
    "bam": lambda H, C, *_: {theta: (H,) for theta in THETAS},
    "kerple": lambda H, C, *_: {"r1": (H,), "r2": (H,)},
    "t5": lambda H, C, *_: {"bias": (H, 32)},
    "fire": lambda H, *_: {"c": (1,), "m": (1,), "w1": (32,), "b1": (32,), "w2": (H, 32), "b2": (H,)},
    "cable": lambda H, C, *_: {"weight": (H, C), "bias": (H,)},
    "kcable": lambda H, C, *_: {"weight": (H, C), "bias": (H,)},
    "transformer_xl": lambda H, C, D, *_: {"w_r": (H * D, C), "u": (H, D), "w": (H, D)},
    "cope": lambda H, C, D, prior: {"positions": (D, prior["positions"])},
}


def random_value(rng, name, shape):
    """Values of a parameter that leave no term trivial; None: those of matrices and biases do."""
    if name == "theta_mu":
        return rng.choice([-1, 1], shape) * rng.uniform(0.1, 0.6, shape)
    if name.startswith("theta"):
        return rng.normal(-0.5 if name == "theta_alpha" else 0.6, 0.4, shape)
    if name in ("c", "m"):
        return rng.uniform(0.1, 0.6, shape) * (-1 if name == "c" else 1)
    if name in ("w1", "b1", "w2", "b2"):
        return rng.normal(0, 0.4, shape)
    if name == "positions":
        return rng.normal(0, 0.2, shape)
    if name in ("r1", "r2"):
        return rng.uniform(0.1, 1.5, shape)
    return None


def is_trained(prior, name):
    return name in prior["train"] if name in THETAS else True


def alibi_slopes(H):
    """2^(-8h/H), h = 1..H; for H no power of two: those of the power of two P below, then the
    first H - P of every other slope of 2P heads."""
    P = 2 ** int(math.log2(H))
    slopes = [2.0 ** (-8 * h / P) for h in range(1, P + 1)]
    between = [2.0 ** (-8 * h / (2 * P)) for h in range(1, 2 * P + 1, 2)]
    return slopes + between[:H - P]


def t5_bucket(d):
    """Bucket of distance d: its own below 16, then as many of equal width in log d up to 128."""
    if d < 16:
        return d
    return min(31, 16 + int(math.log(d / 16) / math.log(128 / 16) * 16))


def bias(prior, theta, h, H, D, T, x, position, trained_at, q, k, s, visible, distances, causal):
    """b_ij of head h, (T, T) or (B, T, T), meaningful where visible. theta: the prior's parameters;
    x (B, T, C): what q, k and v are made of; position (B, T): in the document; q, k (B, T, D) and
    s (B, T, T): the head's queries, keys and scores; visible (B, T, T) bool: keys that a query sees,
    j <= i where attention is causal; distances (T): what stands for 0, 1, 2, ... where that is
    random."""
    i, j = torch.arange(T)[:, None].double(), torch.arange(T)[None, :].double()
    distance = (i - j).abs()
    name = prior["name"]
    if name == "alibi":
        nearer = 0 if causal else prior.get("asymmetry", 0.5)
        return -alibi_slopes(H)[h] * (distances[(i - j).abs().long()] - nearer * (j < i))
    if name == "nape" and h < H // 2:
        of_heads = alibi_slopes(H if prior.get("slope_heads") == "H" else H // 2)
        slope = {"harmonic": 1 / (h + 1), "halving": 1 / 2 ** h, "exponential": of_heads[h]}
        return -slope[prior["slopes"]] * distance
    if name == "kerple":
        r1, r2, d = theta["r1"][h], theta["r2"][h], distance
        if prior["kernel"] == "logarithmic":
            return -r1 * torch.log(1 + r2 * d)
        # d = 0 apart: 0^r2 is 0, and so is its derivative, where autograd finds 0 log 0.
        return torch.where(d > 0, -r1 * torch.where(d > 0, d, 1.0) ** r2, 0.0)
    if name == "t5":
        buckets = torch.tensor([[t5_bucket(abs(a - b)) for b in range(T)] for a in range(T)])
        gain = math.sqrt(D) if prior.get("gain") == "sqrt(D)" else 1
        return gain * theta["bias"][h][buckets]
    if name == "fire":
        c, m = theta["c"].abs(), theta["m"].abs()
        psi = lambda y: torch.log(c * y + 1)
        threshold = m * (prior["threshold_length"] or trained_at)
        later = position[:, torch.maximum(i, j).long()]  # (B, T, T), of the two tokens
        u = psi(distance) / (psi(torch.maximum(later.double(), threshold)) + 1e-6)
        hidden = u[..., None] * theta["w1"] + theta["b1"]
        hidden = torch.where(hidden > 0, hidden, prior.get("negative_slope", 0) * hidden)
        return hidden @ theta["w2"][h] + theta["b2"][h]
    if name == "cope":
        E, last = theta["positions"], theta["positions"].shape[1] - 1
        gates = torch.sigmoid(s) * visible
        count = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=last)  # of gates from j to i
        low = count.detach().floor().long()
        of_low, of_high = ((q @ E).gather(-1, at) for at in (low, (low + 1).clamp(max=last)))
        return of_low + (count - low) * (of_high - of_low)
    if name in ("cable", "kcable"):
        S = torch.cumsum(F.softplus(x @ theta["weight"][h] + theta["bias"][h]), -1)  # (B, T)
        rise = S[:, None, :] - S[:, :, None]  # S_j - S_i
        return -rise.abs() if name == "cable" else -torch.log(1 + rise ** 2)
    if name == "transformer_xl":
        behind = -distances[1:].flip(0)  # of keys behind the query
        d, c = torch.cat([behind, distances])[:, None], torch.arange(x.shape[-1])
        angle = d * 10000.0 ** (-(c // 2 * 2).double() / len(c))
        r = torch.where(c % 2 == 0, angle.sin(), angle.cos()) @ theta["w_r"][h * D:(h + 1) * D].T
        by_distance = (q + theta["w"][h]) @ r.T  # (B, T, 2T - 1)
        at = (i - j + T - 1).long().expand(x.shape[0], T, T)
        return (by_distance.gather(2, at) + (k @ theta["u"][h])[:, None]) / math.sqrt(D)
    if name == "bam":
        alpha, beta, mu = (theta[f"theta_{x}"][h] for x in ("alpha", "beta", "mu"))
        shift = torch.exp(mu) - torch.exp(-mu)
        b = -torch.exp(alpha) * (torch.abs((j - i) - shift) + BAM_EPS) ** beta
        return torch.where(b < BAM_FLOOR, torch.full_like(b, BAM_FLOOR), b)
    return torch.zeros(T, T, dtype=torch.double)
