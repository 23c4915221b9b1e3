"""Models that bamtrain trained, in plain PyTorch for Hugging Face's transformers.

One formula for all of them. Query i and key j of a document, d = i - j, n_i keys visible to i:

    s_ij = <q_i, k_j> / sqrt(D)                        cable, kcable: content_scale <q_i, k_j>
    z_ij = t_i s_ij + b_ij,  or t_i (s_ij + b_ij)      prior: b, or a rotation of q and k,
    o_i  = sum_j N(z_i)_j v_j                                   or an embedding of positions
                                                       mix: b of all heads' s and b
                                                       scale: t
                                                       normalizer: N

Logits are formed in fp32, and what depends on distances and positions in fp64, whatever the dtype
of the weights: distances are integers, which bf16 does not hold past 256. Attention takes memory
for all pairs of queries and keys.

One file, whatever its length: transformers fetches the files of a model one by one, and a reader
finds every formula here.
"""

import math
from dataclasses import fields

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast

from .configuration_bamtrain import BamtrainConfig

FIRE_HIDDEN = 32
T5_BUCKETS, T5_EXACT, T5_FARTHEST = 32, 16, 128
ENTMAX_HALVINGS = 30
BAM_EPS, BAM_FLOOR = 1e-5, -1e4
SUMS = {"cable", "kcable"}
UNBIASED = {"nope", "rope", "rope_local", "sinusoidal", "learned"}
DAPE_SLOPE = 0.01
# What transformers calls the cache that forward() takes and returns: `cache` from 5.24 on.
CACHE = "cache" if "cache" in {f.name for f in fields(CausalLMOutputWithPast)} else "past_key_values"


def parameters_of(*mechanisms):
    """Parameters by name. Their values come from a checkpoint: there are no initial ones."""
    return nn.ParameterDict({name: nn.Parameter(torch.zeros(shape, dtype=torch.float32))
                             for mechanism in mechanisms
                             for name, shape in mechanism.get("parameters", {}).items()})


# --- what a query sees ----------------------------------------------------------------------------


class Rows:
    """Queries past .. past + T of rows with as many keys: distances, documents, positions.

    real (B, past + T) bool: no padding. starts (B, past + T) bool: begins a document.
    """

    def __init__(self, real, starts, past):
        index = torch.arange(real.shape[1], device=real.device)
        begins = starts | (real & (real.cumsum(-1) == 1))
        first = torch.where(begins, index, 0).cummax(-1).values  # of the document of each token
        self.past, self.keys = past, real.shape[1]
        self.tokens = real.sum(-1)  # (B)
        self.position = index - first  # (B, keys), in the document
        self.distance = index[past:, None] - index  # (T, keys); negative for keys to come
        self.seen = real[:, None, :] & (self.distance >= 0) & (index >= first[:, past:, None])

    def visible(self, window):
        """(B, T, keys) bool. Padding, whose output nobody reads, sees itself."""
        seen = self.seen & (self.distance < window) if window else self.seen
        return seen | (self.distance == 0)

    def of_distance(self, table):
        """(H, T, keys) fp32 of a table (H, keys) by distance."""
        return table.float()[:, self.distance.clamp(min=0)]


# --- priors: b_ij ---------------------------------------------------------------------------------


def alibi_slopes(heads):
    """2^(-8h/H), h = 1 .. H; past the largest power of two P below H every second one of 2 P."""
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    return slopes + [2.0 ** (-8 * h / (2 * power)) for h in range(1, 2 * (heads - power), 2)]


def slopes_of(prior, heads):
    """Of priors b = -slope d, per head."""
    if prior["name"] == "alibi":
        return alibi_slopes(heads)
    sloped = heads // 2  # nape: the other heads have no prior
    if prior["slopes"] == "harmonic":
        slopes = [1 / h for h in range(1, sloped + 1)]
    elif prior["slopes"] == "halving":
        slopes = [2.0 ** (1 - h) for h in range(1, sloped + 1)]
    else:
        slopes = alibi_slopes(heads if prior["slope_heads"] == "H" else sloped)[:sloped]
    return slopes + [0.0] * (heads - sloped)


def t5_bucket(d):
    """One for each distance below 16, then 16 of equal width in log d up to 128."""
    share = torch.log(d.clamp(min=T5_EXACT) / T5_EXACT) / math.log(T5_FARTHEST / T5_EXACT)
    far = (T5_EXACT + (share * (T5_BUCKETS - T5_EXACT)).long()).clamp(max=T5_BUCKETS - 1)
    return torch.where(d < T5_EXACT, d.long(), far)


def table_bias(prior, theta, heads, d):
    """b (heads, len(d)) fp64 of priors that depend on the distances d (fp64, >= 0) alone."""
    name = prior["name"]
    theta = {key: value.double()[:, None] for key, value in theta.items()}
    if name in ("alibi", "nape"):
        return -torch.tensor(slopes_of(prior, heads), dtype=d.dtype, device=d.device)[:, None] * d
    if name == "bam":
        mu = theta["theta_mu"]
        far = (-d - (mu.exp() - (-mu).exp())).abs() + BAM_EPS
        return (-theta["theta_alpha"].exp() * far ** theta["theta_beta"]).clamp(min=BAM_FLOOR)
    if name == "kerple" and prior["kernel"] == "logarithmic":
        return -theta["r1"] * torch.log1p(theta["r2"] * d)
    if name == "kerple":
        # 0^r2 is 0 and does not depend on r2, which autograd would not know.
        return torch.where(d > 0, -theta["r1"] * d.clamp(min=1) ** theta["r2"], 0.0)
    if name == "t5":
        return prior["gain"] * theta["bias"][:, 0, t5_bucket(d)]
    raise ValueError(f"unknown prior {name}")


def fire_bias(prior, theta, rows):
    """b = f(psi(d) / psi(max(position, |m| L0))), f a network of one hidden layer."""
    c, m = theta["c"].double().abs(), theta["m"].double().abs()
    position = rows.position[:, rows.past:].double()
    row = torch.log1p(c * torch.maximum(position, m * prior["threshold_length"])) + 1e-6
    psi = torch.log1p(c * torch.arange(rows.keys, device=c.device))
    u = (psi[rows.distance.clamp(min=0)] / row[:, :, None]).float()  # (B, T, keys)
    w1, b1, w2, b2 = (theta[name].float() for name in ("w1", "b1", "w2", "b2"))
    b = b2[:, None, None].expand(u.shape[0], len(b2), *u.shape[1:])
    slope = prior.get("negative_slope", 0.0)
    for k in range(FIRE_HIDDEN):  # one unit at a time, so that memory is that of b
        b = b + w2[:, k, None, None] * F.leaky_relu(w1[k] * u + b1[k], slope)[:, None]
    return b


def summed_bias(prior, theta, x, rows, cache, slot):
    """cable: S_j - S_i; kcable: -log(1 + (S_j - S_i)^2); S runs over softplus of gates of x."""
    gates = F.linear(x.float(), theta["weight"].float(), theta["bias"].float())
    S = F.softplus(gates).double().cumsum(1).transpose(1, 2)  # (B, H, T)
    if cache is not None:
        past = cache.layers[slot].keys if rows.past else None
        if past is not None:
            S = S + past[:, :, -1]
        S = remember(cache, slot, S[..., None])[..., 0]
    rise = S[:, :, None, :] - S[:, :, rows.past:, None]
    return (rise if prior["name"] == "cable" else -torch.log1p(rise ** 2)).float()


def relative_bias(theta, q, k, rows):
    """b = (<q_i + w, r_d> + <u, k_j>) / sqrt(D), r_d = w_r sinusoid(d), of q (B, H, T, D) and k (B,
    H, keys, D)."""
    H, D, w_r = q.shape[1], q.shape[3], theta["w_r"].float()
    sinusoids = sinusoidal("pair", torch.arange(rows.keys, device=q.device)[None], w_r.shape[1])[0]
    r = (sinusoids @ w_r.T).view(rows.keys, H, D).transpose(0, 1)  # (H, keys, D), by distance
    of_distance = (q.float() + theta["w"].float()[:, None]) @ r.transpose(1, 2)
    at = rows.distance.clamp(min=0).expand(of_distance.shape)
    of_key = k.float() @ theta["u"].float()[:, :, None]  # (B, H, keys, 1)
    return (of_distance.gather(-1, at) + of_key.transpose(2, 3)) / math.sqrt(D)


def contextual_bias(theta, q, s, visible):
    """cope: <q, E[p]>, E linear between its columns, p the sum of the gates sigmoid(s) from a key to
    the row's own, at most the last column. q (B, H, T, D), s (B, H, T, keys), visible (B, T, keys)."""
    E = theta["positions"].float()
    last = E.shape[1] - 1
    gates = s.sigmoid().masked_fill(~visible[:, None], 0)
    p = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=last)
    low = p.detach().floor().long()
    at = q.float() @ E
    at_low, at_high = (at.gather(-1, column) for column in (low, (low + 1).clamp(max=last)))
    return at_low + (p - low) * (at_high - at_low)


def content_divisor(prior, D, C):
    """What <q, k> is divided by: 1 / content_scale, where the prior has one."""
    scale = prior.get("content_scale", "1/sqrt(D)")
    divisors = {"1/sqrt(D)": math.sqrt(D), "1": 1.0, "1/sqrt(C)": math.sqrt(C)}
    if scale not in divisors:
        raise ValueError(f"content_scale of {prior['name']}: expected one of {list(divisors)}, "
                         f"found {scale!r}")
    return divisors[scale]


# --- what mixes heads: the biases that take the place of a prior's --------------------------------


def mixed_bias(prior, theta, s, b):
    """dape: b, where the variant keeps it, and a network of the scores s and of b, both (B, H, T,
    keys) fp32, over the heads."""
    variant = prior["mix"]["variant"]
    w1, c1, w2, c2 = (theta[name].float() for name in ("weight1", "bias1", "weight2", "bias2"))
    if prior["name"] in UNBIASED:
        u = s
    else:
        b = b.expand_as(s)
        u = {"concat": (s, b), "concat_residual": (s, b), "add_residual": (s + b,),
             "bias_only": (b,)}[variant]
        u = torch.cat(u, 1)
    hidden = torch.einsum("kh,bhij->bkij", w1, u)
    hidden = F.leaky_relu(hidden + c1[:, None, None], DAPE_SLOPE)
    f = torch.einsum("hk,bkij->bhij", w2, hidden) + c2[:, None, None]
    return f if variant == "concat" or prior["name"] in UNBIASED else b + f


# --- priors that rotate queries and keys, or embed positions --------------------------------------


def rope_frequencies(prior, D, trained_at):
    """(angle per position of each pair of channels (D / 2) fp64, factor of the rotated vectors)."""
    theta, scaling, factor = prior["theta"], prior["scaling"], prior["factor"]
    pair = torch.arange(D // 2, dtype=torch.float64)
    if scaling == "ntk":
        theta = theta * factor ** (D / (D - 2))
    frequency = theta ** (-2 * pair / D)
    if scaling == "linear":
        return frequency / factor, 1.0
    if scaling == "yarn":
        first, last = (D * math.log(trained_at / (turns * 2 * math.pi)) / (2 * math.log(theta))
                       for turns in (32, 1))
        first, last = max(math.floor(first), 0), min(math.ceil(last), D - 1)
        share = ((pair - first) / (0.001 if first == last else last - first)).clamp(0, 1)
        return frequency * (1 - share) + frequency / factor * share, 0.1 * math.log(factor) + 1
    if scaling == "llama3":
        turns = trained_at * frequency / (2 * math.pi)
        share = ((4 - turns) / (4 - 1)).clamp(0, 1)
        return frequency * (1 - share) + frequency / factor * share, 1.0
    return frequency, 1.0


def rotate(x, cosine, sine):
    """x (B, heads, T, D), pairs (c, c + D/2); cosine, sine (B, T, D/2) fp32."""
    a, b = x.float().chunk(2, -1)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(x.dtype)


def sinusoidal(variant, position, C):
    """(B, T, C) fp32: sines of even, cosines of odd channels; "pair": two share a frequency."""
    channel = torch.arange(C, device=position.device)
    exponent = channel - channel % 2 if variant == "pair" else channel
    angle = position[..., None].double() * 10000.0 ** (-exponent.double() / C)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()


# --- logit scales: t_i ----------------------------------------------------------------------------


def row_scale(scale, theta, x, n, plain):
    """t (B, heads, T) fp64 for rows that see n (B, T) keys, None: 1. x (B, T, C) is the input of
    attention, plain (B, heads, T, keys) its logits without a scale."""
    name = scale["name"]
    theta = {key: value.double() for key, value in theta.items()}
    log_n1 = torch.log(n.double() + 1)[:, None]  # (B, 1, T)
    if name == "ssmax":
        rise = theta["s"][:, None] * torch.log(n.double() + scale["offset"])[:, None]
        return scale["delta"] + rise
    if name == "sentmax":
        return scale["delta"] + theta["beta"][:, None] * log_n1 ** theta["gamma"][:, None]
    if name == "constant":
        return torch.full(n[:, None].shape, scale["t"], dtype=torch.float64, device=n.device)
    if name == "by_length":
        if n.max() > theta["t"].shape[1]:
            raise ValueError(f"at most {theta['t'].shape[1]} visible keys, the learned table: give "
                             f"shorter inputs (a query sees {int(n.max())})")
        return theta["t"][:, n - 1].transpose(0, 1)
    if name == "adaptive":
        def gate(of):
            bias = theta.get(f"{of}_bias")
            return F.linear(x.double(), theta[f"{of}_weight"], bias).transpose(1, 2)

        exponent = scale["g"] * torch.tanh(gate("gamma"))
        return scale["delta"] + F.softplus(gate("beta")) * log_n1 ** exponent
    if name == "entropy":
        p = plain.detach().softmax(-1)  # for evaluation: it has no derivative
        H = torch.special.entr(p).sum(-1).double()
        t = (((-0.037 * H + 0.481) * H - 2.3) * H + 4.917) * H - 1.791
        return torch.where(H > 0.5, t.clamp(min=1), 1.0)
    if name == "none":
        return None
    raise ValueError(f"unknown scale {name}")


# --- normalizers: the weights p_ij of a row's keys, (B, H, T, keys) fp32 --------------------------


def weight_of_largest(c, a, alpha):
    """The weight w of the largest logit of a row. By sorting where alpha is 1.5 or 2, else by
    halving log w between those of 1 / keys and 1."""
    if alpha in (1.5, 2):
        # Weights are powers of delta - c, delta = w^a: that of the k largest for every k.
        c = c.clamp(max=1).sort(-1).values  # no key with c >= 1 has a weight
        k = torch.arange(1, c.shape[-1] + 1, device=c.device)
        mean = c.cumsum(-1) / k
        delta = mean + 1 / k
        if alpha == 1.5:
            variance = (c ** 2).cumsum(-1) / k - mean ** 2
            delta = mean + (1 / k - variance).clamp(min=0).sqrt()
        size = (c < delta).sum(-1, keepdim=True)
        return delta.gather(-1, size - 1) ** (1 / a)
    low = torch.full_like(c[..., :1], 1 / c.shape[-1])
    high = torch.ones_like(low)
    for _ in range(ENTMAX_HALVINGS):
        middle = (low * high).sqrt()
        enough = entmax_weights(c, a, middle).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return high


def entmax_weights(c, a, w):
    """w [1 - c / w^a]_+^(1/a), w itself where c is 0, whatever w^a is in fp32."""
    x = torch.where(c == 0, 0.0, c / w ** a).clamp(max=1)
    return w * torch.exp(torch.log1p(-x) / a)


class Entmax(torch.autograd.Function):
    """p = [a z - tau]_+^(1/a), a = alpha - 1 (heads, 1, 1) fp32, tau such that a row sums to 1. z
    (B, heads, T, keys) fp32 is -inf where hidden, one key of a row is not. alpha: where it is the
    same number in all heads, else None.

    Formed from the distances c = a (max z - z) and the weight of the largest logit, which is at
    least 1 / keys: tau itself leaves fp32 for a large alpha.
    """

    @staticmethod
    def forward(ctx, z, a, alpha):
        c = a * (z.amax(-1, keepdim=True) - z)
        p = entmax_weights(c, a, weight_of_largest(c, a, alpha))
        p = p / p.sum(-1, keepdim=True)
        ctx.save_for_backward(p, a)
        return p

    @staticmethod
    def backward(ctx, dp):
        p, a = ctx.saved_tensors
        # Past alpha 2 the slope p^(2 - alpha) has no bound: as in training it has that of least.
        least = torch.where(a > 7, 1e-7 ** (1 / a), 1e-6) * (a > 1)
        u = torch.where(p > 0, torch.maximum(p, least) ** (1 - a), 0.0)
        centred = dp - (u * dp).sum(-1, keepdim=True) / u.sum(-1, keepdim=True)
        da = (p * centred).sum(-1) / a[..., 0] ** 2
        da = da + (torch.special.entr(p) * centred).sum(-1) / a[..., 0]
        # Near alpha 1 these cancel. To alpha 2 they are sum u (dP - D) g(a log p) / a^2.
        y = a * p.clamp(min=1e-38).log()
        rest = 1 / 30 + y * (1 / 144 + y * (1 / 840 + y / 5760))
        near = -y * y * (1 / 2 + y * (1 / 3 + y * (1 / 8 + y * rest)))
        g = torch.where(y > -0.5, near, y.exp() * (1 - y) - 1)
        by_slope = (u * centred * g).sum(-1) / a[..., 0] ** 2
        da = torch.where(a[..., 0] <= 1, by_slope, da)
        return u * centred, da.sum((0, 2))[:, None, None], None


def largest_keys(z, normalizer, seen, rows):
    """(B, H, T, keys) bool: the k largest logits of a row; of equal ones the first keys."""
    k = normalizer["k"]
    if k == "n/2":
        n = rows.tokens[:, None] if normalizer["of"] == "sequence" else seen.sum(-1)
        k = (n // 2).clamp(min=1)[:, None, :, None]
    place = z.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    return place < k


def stick_breaking(z, broken):
    """sigmoid(z_ij) prod_{j < k < i} (1 - sigmoid(z_ik)) of `broken`, the keys below the row's own
    that it sees."""
    z = z.masked_fill(~broken, 0.0)
    passed = F.logsigmoid(-z).masked_fill(~broken, 0.0)
    nearer = F.pad(passed[..., 1:], (0, 1))  # from j + 1 on
    left = nearer.flip(-1).cumsum(-1).flip(-1)
    return (F.logsigmoid(z) + left).exp().masked_fill(~broken, 0.0)


def refuse_growth(normalizer):
    """Incremental decoding does not know the final length."""
    if normalizer["name"] == "topk" and normalizer["k"] == "n/2" and normalizer["of"] == "sequence":
        raise ValueError('normalizer.of: expected "row" with k "n/2": incremental decoding does not '
                         'know the final length, found "sequence"; set config.normalizer["of"] to '
                         '"row", or pass whole sequences at once')


def weights(normalizer, theta, z, seen, rows):
    """Of logits z (B, H, T, keys) fp32, -inf but for the keys seen (B, T, keys)."""
    name = normalizer["name"]
    if name == "softmax":
        return z.softmax(-1)
    if name == "entmax":
        if normalizer["learned"]:
            return Entmax.apply(z, F.softplus(theta["alpha"].float())[:, None, None], None)
        a = z.new_full((z.shape[1], 1, 1), normalizer["alpha"] - 1)
        return Entmax.apply(z, a, normalizer["alpha"])
    if name == "topk":
        if rows.past:
            refuse_growth(normalizer)
        return z.masked_fill(~largest_keys(z, normalizer, seen, rows), -math.inf).softmax(-1)
    if name == "stick_breaking":
        return stick_breaking(z, (seen & (rows.distance > 0))[:, None])
    raise ValueError(f"unknown normalizer {name}")


# --- the decoder ----------------------------------------------------------------------------------


def remember(cache, slot, new):
    """Appends `new` (B, heads, T, values) to what a slot past the layers' own holds; returns all.

    The cache treats a slot as it does a layer's keys, whatever generation does to them.
    """
    while len(cache.layers) <= slot:
        cache.layers.append(DynamicLayer())
    return cache.update(new, new[..., :0], slot)[0]


class Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.config, self.layer = config, layer
        self.options = config.priors[layer % len(config.priors)]
        H, K, C = config.num_attention_heads, config.num_key_value_heads, config.hidden_size
        self.heads, self.kv_heads, self.head_dim = H, K, config.head_dim
        self.content_divisor = content_divisor(self.options, self.head_dim, C)
        bias = "attention" in config.bias
        self.q_proj = nn.Linear(C, H * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(C, K * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(C, K * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(H * self.head_dim, C, bias=bias)
        if not self.options.get("share"):
            self.prior = parameters_of(self.options)
        if "mix" in self.options:
            self.mix = parameters_of(self.options["mix"])
        self.scale = parameters_of(config.scale)
        self.normalizer = parameters_of(config.normalizer)

    def bias(self, x, q, k, s, visible, rows, shared, cache):
        """b, (B, H, T, keys) or (H, T, keys) fp32; 0 where the prior has none."""
        prior, name = self.options, self.options["name"]
        theta = shared if prior.get("share") else self.prior
        if name == "fire":
            return fire_bias(prior, theta, rows)
        if name == "transformer_xl":
            return relative_bias(theta, q, k, rows)
        if name == "cope":
            return contextual_bias(theta, q, s, visible)
        if name in SUMS:
            slot = self.config.num_hidden_layers + 1 + self.layer
            return summed_bias(prior, theta, x, rows, cache, slot)
        if name in UNBIASED:
            return 0.0
        theta = {key: theta[key] for key in prior.get("parameters", {})}
        d = torch.arange(rows.keys, dtype=torch.float64, device=x.device)
        return rows.of_distance(table_bias(prior, theta, self.heads, d))

    def forward(self, x, rows, shared, cache):
        B, T, _ = x.shape
        q, k, v = (project(x).view(B, T, -1, self.head_dim).transpose(1, 2)
                   for project in (self.q_proj, self.k_proj, self.v_proj))
        if self.options["name"] in ("rope", "rope_local"):
            trained_at = (self.options.get("original_length")
                          or self.config.max_position_embeddings)
            frequency, factor = rope_frequencies(self.options, self.head_dim, trained_at)
            angle = rows.position[:, rows.past:, None] * frequency.to(x.device)
            cosine, sine = (angle.cos() * factor).float(), (angle.sin() * factor).float()
            q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)

        s = q.float() @ k.float().transpose(2, 3) / self.content_divisor
        visible = rows.visible(self.options["window"])
        b = self.bias(x, q, k, s, visible, rows, shared, cache)
        if "mix" in self.options:
            b = mixed_bias(self.options, self.mix, s, b)
        hidden = ~visible[:, None]
        plain = (s + b).masked_fill(hidden, -math.inf)
        t = row_scale(self.config.scale, self.scale, x, visible.sum(-1), plain)
        z = plain
        if t is not None:
            t = t.float()[..., None].expand(B, self.heads, T, 1).clone()
            if self.options["name"] == "nape":
                t[:, :self.heads // 2] = 1
            z = t * (s + b) if self.options["scale_bias"] else t * s + b
            z = z.masked_fill(hidden, -math.inf)
        p = weights(self.config.normalizer, self.normalizer, z, visible, rows)
        out = p.to(v.dtype) @ v
        return self.o_proj(out.transpose(1, 2).reshape(B, T, -1))


ACTIVATIONS = {"swiglu": F.silu, "geglu": lambda x: F.gelu(x, approximate="tanh"),
               "gelu": lambda x: F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu,
               "relu": F.relu}
GATED = {"swiglu", "geglu"}


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        C, F_ = config.hidden_size, config.intermediate_size
        self.kind = config.mlp
        bias = "mlp" in config.bias
        if self.kind in GATED:
            self.gate_proj = nn.Linear(C, F_, bias=bias)
        self.up_proj = nn.Linear(C, F_, bias=bias)
        self.down_proj = nn.Linear(F_, C, bias=bias)

    def forward(self, x):
        act = ACTIVATIONS[self.kind]
        if self.kind in GATED:
            return self.down_proj(act(self.gate_proj(x)) * self.up_proj(x))
        return self.down_proj(act(self.up_proj(x)))


def make_norm(config):
    if config.norm == "rmsnorm":
        return nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
    return nn.LayerNorm(config.hidden_size, eps=config.norm_eps,
                        bias="norm" in config.bias)


class Block(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.position = config.norm_position
        if self.position != "post":
            self.input_layernorm = make_norm(config)
        self.self_attn = Attention(config, layer)
        self.post_attention_layernorm = make_norm(config)
        if self.position == "both":
            self.pre_feedforward_layernorm = make_norm(config)
        self.mlp = MLP(config)
        if self.position != "pre":
            self.post_feedforward_layernorm = make_norm(config)

    def forward(self, x, *of_attention):
        if self.position == "pre":
            x = x + self.self_attn(self.input_layernorm(x), *of_attention)
            return x + self.mlp(self.post_attention_layernorm(x))
        if self.position == "post":
            x = self.post_attention_layernorm(x + self.self_attn(x, *of_attention))
            return self.post_feedforward_layernorm(x + self.mlp(x))
        branch = self.self_attn(self.input_layernorm(x), *of_attention)
        x = x + self.post_attention_layernorm(branch)
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class BamtrainPreTrainedModel(PreTrainedModel):
    config_class = BamtrainConfig
    base_model_prefix = "model"
    _no_split_modules = ["Block"]
    # Few numbers on which all logits depend: fp32 as in training, whatever the rest is loaded as.
    _keep_in_fp32_modules_strict = ["prior", "mix", "scale", "normalizer"]


class BamtrainModel(BamtrainPreTrainedModel):
    """The decoder without its head.

    Positions follow from `attention_mask` (B, past + T), 0 for padding, and from where documents
    begin. A cache is a DynamicCache; its slots past those of the layers hold, in this order, where
    documents begin and the running sums of each layer with cable or kcable.
    """

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        prior = config.priors[0]
        if prior["name"] == "learned":
            self.embed_positions = nn.Embedding(prior["positions"], config.hidden_size)
        self.prior = parameters_of(*(prior for prior in config.priors if prior.get("share")))
        self.layers = nn.ModuleList(Block(config, l) for l in range(config.num_hidden_layers))
        self.norm = nn.Identity() if config.norm_position == "post" else make_norm(config)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed_tokens

    def set_input_embeddings(self, value):
        self.embed_tokens = value

    def rows(self, input_ids, attention_mask, cache):
        past = cache.get_seq_length() if cache is not None else 0
        B, keys = input_ids.shape[0], past + input_ids.shape[1]
        if attention_mask is None:
            attention_mask = torch.ones(B, keys, dtype=torch.bool, device=input_ids.device)
        if attention_mask.shape != (B, keys):
            raise ValueError(f"expected an attention_mask of shape {(B, keys)}, 0 for padding, for "
                             f"all tokens so far; got {tuple(attention_mask.shape)}")
        starts = torch.zeros(B, keys, dtype=torch.bool, device=input_ids.device)
        if self.config.document_start is not None:
            starts = (input_ids == self.config.document_start)[:, None, :, None]
            if cache is not None:
                starts = remember(cache, self.config.num_hidden_layers, starts)
            starts = starts[:, 0, :, 0]
        return Rows(attention_mask.bool(), starts, past)

    def embed(self, input_ids, rows):
        x, position = self.embed_tokens(input_ids), rows.position[:, rows.past:]
        prior = self.config.priors[0]
        if self.config.embed_scale:
            x = (x.float() * math.sqrt(self.config.hidden_size)).to(x.dtype)
        if prior["name"] == "learned":
            if position.max() >= self.embed_positions.num_embeddings:
                raise ValueError(f"at most {self.embed_positions.num_embeddings} positions, the "
                                 f"learned table: give shorter inputs (got {position.max() + 1})")
            x = x + self.embed_positions(position)
        if prior["name"] == "sinusoidal":
            of_position = sinusoidal(prior["variant"], position, x.shape[-1])
            x = (x.float() + of_position).to(x.dtype)
        return x

    def forward(self, input_ids, attention_mask=None, past_key_values=None, use_cache=None,
                cache=None, **kwargs):
        if cache is None:
            cache = past_key_values
        if use_cache is None:
            use_cache = self.config.use_cache
        if use_cache and cache is None:
            cache = DynamicCache()
        rows = self.rows(input_ids, attention_mask, cache)
        x = self.embed(input_ids, rows)
        for block in self.layers:
            x = block(x, rows, self.prior, cache)
        return BaseModelOutputWithPast(last_hidden_state=self.norm(x), **{CACHE: cache})


class BamtrainForCausalLM(BamtrainPreTrainedModel, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = BamtrainModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size,
                                 bias="head" in config.bias)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def set_input_embeddings(self, value):
        self.model.embed_tokens = value

    def get_output_embeddings(self):
        return self.lm_head

    def set_output_embeddings(self, value):
        self.lm_head = value

    def generate(self, *args, **kwargs):
        refuse_growth(self.config.normalizer)
        return super().generate(*args, **kwargs)

    def forward(self, input_ids, attention_mask=None, past_key_values=None, labels=None,
                use_cache=None, logits_to_keep=0, cache=None, **kwargs):
        """Logits of the last `logits_to_keep` tokens, 0: of all. `labels` (B, T) are the inputs
        themselves, -100 where no loss is wanted: they are shifted here."""
        outputs = self.model(input_ids, attention_mask, past_key_values, use_cache, cache)
        x = outputs.last_hidden_state
        if isinstance(logits_to_keep, int):
            x = x[:, -logits_to_keep:] if logits_to_keep else x
        else:
            x = x[:, logits_to_keep]
        logits = self.lm_head(x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        return CausalLMOutputWithPast(loss=loss, logits=logits, **{CACHE: outputs.get(CACHE)})
