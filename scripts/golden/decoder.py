"""The decoder in dense float64 PyTorch: T x T matrices, one head at a time, autograd for gradients.

Written from the mathematics alone and for reading, not for speed. `p` is {checkpoint name: tensor},
`config` the run config as a dict, tokens a (B, T) integer tensor of inputs.
"""

import math

import torch
import torch.nn.functional as F

import mixes
import normalizers
import priors


def documents(tokens, config):
    """Which document each position is in, and its position in that document: two (B, T) tensors.

    A document begins at the window's start and at every `document_start` token; without a document
    mask the window is one document. Behind the length of its row, where the config has lengths,
    every token is one.
    """
    B, T = tokens.shape
    lengths = config["data"].get("lengths", [T] * B)
    document = torch.zeros(B, T, dtype=torch.long)
    position = torch.zeros(B, T, dtype=torch.long)
    for b in range(B):
        for i in range(1, T):
            starts = i >= lengths[b] or (config["model"]["attention"]["document_mask"]
                                         and tokens[b, i] == config["data"]["document_start"])
            document[b, i] = document[b, i - 1] + (1 if starts else 0)
            position[b, i] = 0 if starts else position[b, i - 1] + 1
    return document, position


def is_causal(config):
    return config["model"]["attention"].get("causal", True)


def visible_keys(document, window, causal):
    """(B, T, T) bool: query i sees key j of its own document with |i - j| < window (0: all), and
    j <= i where attention is causal."""
    T = document.shape[1]
    i, j = torch.arange(T)[:, None], torch.arange(T)[None, :]
    visible = document[:, :, None] == document[:, None, :]
    if causal:
        visible = visible & (j <= i)
    return visible & ((i - j).abs() < window) if window else visible


def chosen(config, layer):
    """What a layer's prior is: the config's only one, or the next one of its list, over and over."""
    prior = config["model"]["attention"]["prior"]
    return prior[layer % len(prior)] if isinstance(prior, list) else prior


def prior_of(config, layer):
    """The prior of a layer, where heads are mixed that of which they are mixed with."""
    prior = chosen(config, layer)
    return prior["base"] if prior["name"] in mixes.NAMES else prior


def mix_of(config, layer):
    """What mixes the heads of a layer, or None."""
    prior = chosen(config, layer)
    return prior if prior["name"] in mixes.NAMES else None


def nape_heads(prior, H):
    """How many heads of a nape model have slopes (and no scale); 0 for the other priors."""
    return H // 2 if prior["name"] == "nape" else 0


def content_divisor(prior, D, C):
    """What <q, k> is divided by."""
    return {"1/sqrt(D)": math.sqrt(D), "1": 1.0,
            "1/sqrt(C)": math.sqrt(C)}[prior.get("content_scale", "1/sqrt(D)")]


def frequencies(prior, D, T):
    """(angles per position of the D / 2 pairs, factor of rotated vectors) of a rope trained at T."""
    theta, scaling, factor = prior["theta"], prior["scaling"], prior["factor"]
    pair = torch.arange(D // 2).double()
    if scaling == "ntk":
        theta = theta * factor ** (D / (D - 2))
    frequency = theta ** (-2 * pair / D)
    if scaling == "linear":
        return frequency / factor, 1.0
    if scaling == "yarn":
        # The pair that turns so many times within T: theta^(-2c/D) T / (2 pi) = turns.
        ends = [D * math.log(T / (turns * 2 * math.pi)) / (2 * math.log(theta))
                for turns in (32, 1)]
        low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), D - 1)
        ramp = ((pair - low) / max(high - low, 0.001)).clamp(0, 1)
        return frequency * (1 - ramp) + frequency / factor * ramp, 0.1 * math.log(factor) + 1
    if scaling == "llama3":
        smooth = ((T / (2 * math.pi / frequency) - 1) / (4 - 1)).clamp(0, 1)
        return (1 - smooth) * frequency / factor + smooth * frequency, 1.0
    return frequency, 1.0


def rotate(x, position, prior, T):
    """Rotary embedding, pairs (c, c + D/2). x (B, T, heads, D), position (B, T)."""
    half = x.shape[-1] // 2
    frequency, factor = frequencies(prior, x.shape[-1], T)
    angle = position[:, :, None, None].double() * frequency
    cos, sin = angle.cos() * factor, angle.sin() * factor
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def scale_bias(scale, prior):
    """Whether the logit scale multiplies the bias too: entropy always, ssmax by default with bam."""
    if scale["name"] == "entropy":
        return True
    if scale["scale_bias"] == "auto":
        return prior["name"] == "bam" and scale["name"] == "ssmax"
    return scale["scale_bias"] == "true"


def scale(choice, theta, h, n, x, plain):
    """t of head h for rows that see n keys (B, T), shaped as n; None: 1. theta: its parameters; x
    (B, T, C): what q, k and v are made of; plain (B, T, T): the weights without a scale."""
    name = choice["name"]
    if name == "ssmax":
        rise = theta["s"][h] * torch.log((n + choice["offset"]).double())
        return choice.get("delta", 0) + rise
    if name == "sentmax":
        return choice["delta"] + theta["beta"][h] * torch.log((n + 1).double()) ** theta["gamma"][h]
    if name == "constant":
        return torch.full(n.shape, choice["t"], dtype=torch.double)
    if name == "by_length":
        return theta["t"][h][n - 1]
    if name == "adaptive":
        u, w = x @ theta["beta_weight"][h], x @ theta["gamma_weight"][h]
        if choice["bias"]:
            u, w = u + theta["beta_bias"][h], w + theta["gamma_bias"][h]
        gamma = choice["g"] * torch.tanh(w)
        return choice["delta"] + F.softplus(u) * torch.log((n + 1).double()) ** gamma
    if name == "entropy":
        H = torch.special.entr(plain).sum(-1)
        t = sum(c * H ** k for k, c in enumerate(reversed([-0.037, 0.481, -2.3, 4.917, -1.791])))
        return torch.where(H > 0.5, t.clamp(min=1), 1.0)
    return None


def positions_of(positions, layer):
    """(B, T) of a layer, where they are random."""
    if positions is None or positions.dim() == 2:
        return positions
    return positions[layer % len(positions)]


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def parameters(p, owner):
    """{name: value} of what begins with `owner`, without it."""
    return {name[len(owner):]: value for name, value in p.items() if name.startswith(owner)}


def attention(p, config, layer, x, tokens, positions, watch):
    """(B, T, C) -> (B, T, C), the output projection included. positions: as in mean_loss; watch:
    as in logits."""
    model, choice = config["model"], config["model"]["attention"]
    B, T, C = x.shape
    H, KV = model["heads"], model["kv_heads"]
    D = model.get("head_dim") or C // H
    path = f"model.layers.{layer}.self_attn"
    document, position = documents(tokens, config)
    trained_at = config["data"]["sequence_length"]
    prior = prior_of(config, layer)
    drawn = positions_of(positions, layer)
    distances = torch.arange(T) if drawn is None else drawn[0]
    local = trained_at + 1 if prior["name"] == "rope_local" else 0
    causal = is_causal(config)
    visible = visible_keys(document, prior.get("window") or choice["window"] or local, causal)
    n = visible.sum(-1)  # (B, T) number of keys seen, self included

    q = linear(p, path + ".q_proj", x).view(B, T, H, D)
    k = linear(p, path + ".k_proj", x).view(B, T, KV, D)
    v = linear(p, path + ".v_proj", x).view(B, T, KV, D)
    if prior["name"] in ("rope", "rope_local"):
        angles_at = position if drawn is None else drawn
        q, k = (rotate(y, angles_at, prior, trained_at) for y in (q, k))
    theta = parameters(p, "model.prior." if prior.get("share") else path + ".prior.")
    of_scale = parameters(p, path + ".scale.")
    of_normalizer = parameters(p, path + ".normalizer.")
    normalizer = choice.get("normalizer", normalizers.SOFTMAX)

    scores, biases = [], []
    for h in range(H):
        query, key = q[:, :, h], k[:, :, h // (H // KV)]
        s = query @ key.transpose(1, 2) / content_divisor(prior, D, C)
        b = priors.bias(prior, theta, h, H, D, T, x, position, trained_at, query, key, s, visible,
                        distances.double(), causal)
        scores.append(s)
        biases.append(b.expand(B, T, T))
    if mix := mix_of(config, layer):
        biases = mixes.biases(mix, parameters(p, path + ".mix."), scores, biases)

    outputs = []
    for h in range(H):
        kv = h // (H // KV)
        s, b = scores[h], biases[h]
        z = s + b
        plain = torch.softmax(z.masked_fill(~visible, -math.inf), -1)
        t = scale(choice["scale"], of_scale, h, n, x, plain)
        if t is not None and h >= nape_heads(prior, H):
            t = t[:, :, None]
            z = t * (s + b) if scale_bias(choice["scale"], prior) else t * s + b
        weights = normalizers.normalize(normalizer, of_normalizer, h, z, visible)
        if watch:
            watch(of_normalizer, h, z, visible, weights)
        outputs.append(weights @ v[:, :, kv])
    return linear(p, path + ".o_proj", torch.cat(outputs, -1))


def norm(p, config, name, x):
    kind, eps = config["model"]["norm"]["kind"], config["model"]["norm"]["eps"]
    w = p[name + ".weight"]
    if kind == "rmsnorm":
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w
    centred = x - x.mean(-1, keepdim=True)
    y = centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps) * w
    return y + p[name + ".bias"] if name + ".bias" in p else y


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def normal_cumulative(x):
    return torch.special.erfc(-x / math.sqrt(2)) / 2


def mlp(p, config, path, x):
    kind = config["model"]["mlp"]["kind"]
    up = linear(p, path + ".up_proj", x)
    alone = {"gelu": gelu, "gelu_erf": lambda x: x * normal_cumulative(x),
             "relu": lambda x: torch.where(x > 0, x, 0.0)}
    if kind in alone:
        return linear(p, path + ".down_proj", alone[kind](up))
    gate = linear(p, path + ".gate_proj", x)
    gate = gate * torch.sigmoid(gate) if kind == "swiglu" else gelu(gate)
    return linear(p, path + ".down_proj", gate * up)


def embed(p, config, tokens, positions):
    x = p["model.embed_tokens.weight"][tokens]
    _, position = documents(tokens, config)
    position = position if positions is None else positions_of(positions, 0)
    prior, C = prior_of(config, 0), config["model"]["width"]
    name = prior["name"]
    if config["model"].get("embed_scale"):
        x = x * math.sqrt(C)
    if name == "learned":
        x = x + p["model.embed_positions.weight"][position]
    if name == "sinusoidal":
        channel = torch.arange(C)
        own = prior.get("variant") == "bam"  # every channel has a frequency of its own
        frequency = 10000.0 ** (-(channel if own else channel // 2 * 2).double() / C)
        angle = position[:, :, None].double() * frequency
        x = x + torch.where(channel % 2 == 0, angle.sin(), angle.cos())
    return x


def logits(p, config, tokens, positions=None, watch=None):
    """(B, T) tokens -> (B, T, V) logits. positions: as in mean_loss. watch: called with the
    normalizer's parameters, the head, its logits, visible keys and weights, of head after head."""
    x = embed(p, config, tokens, positions)
    place = config["model"].get("norm_position", "pre")
    for layer in range(config["model"]["layers"]):
        path = f"model.layers.{layer}"
        of = lambda name, y: norm(p, config, f"{path}.{name}_layernorm", y)
        attend = lambda y: attention(p, config, layer, y, tokens, positions, watch)
        feed = lambda y: mlp(p, config, path + ".mlp", y)
        if place == "pre":
            x = x + attend(of("input", x))
            x = x + feed(of("post_attention", x))
        elif place == "post":
            x = of("post_attention", x + attend(x))
            x = of("post_feedforward", x + feed(x))
        else:
            x = x + of("post_attention", attend(of("input", x)))
            x = x + of("post_feedforward", feed(of("pre_feedforward", x)))
    if place != "post":
        x = norm(p, config, "model.norm", x)
    head = "model.embed_tokens.weight" if config["model"]["tied"] else "lm_head.weight"
    return F.linear(x, p[head], p.get("lm_head.bias"))


def mean_loss(p, config, tokens, positions=None):
    """tokens (B, T + 1): mean cross-entropy in nats of the B * T targets, first ones included. Where
    the model has classes, a target is the class that is the next token modulo their number.

    positions (B, T), or (layers, B, T): those of training where they are random, documents or not,
    or, of priors that know distances, what is random in place of 0, 1, 2, ..., the same for all B;
    None: positions count from each document's start. Behind the length of its row a target counts as
    0.
    """
    z = logits(p, config, tokens[:, :-1], positions)
    target = tokens[:, 1:, None] % z.shape[-1]
    losses = torch.logsumexp(z, -1) - z.gather(-1, target)[..., 0]
    B, T = losses.shape
    lengths = torch.tensor(config["data"].get("lengths", [T] * B))
    return (losses * (torch.arange(T) < lengths[:, None])).mean()
