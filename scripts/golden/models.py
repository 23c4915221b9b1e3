"""Writes tests/golden/model_<case>.safetensors: small models with their logits, loss and gradients.
Those with another normalizer than softmax are normalizer_<case>.safetensors.

Run by hand, with Debian's torch and numpy:

    /usr/bin/python3 scripts/golden/models.py            writes the files (tests/golden by default)
    /usr/bin/python3 scripts/golden/models.py --check    compares them with fresh values instead
    /usr/bin/python3 scripts/golden/models.py --only bam t5    these cases alone

The models are those of decoder.py, in float64 with gradients from autograd. Before a file is
written its values are checked: gradients against central differences, masked documents against the
same documents run alone, every position against a run with another future, where attention is
bidirectional against one with other padding. Models whose weights are 0 for some keys are drawn until no key is so near to that as to depend on rounding.

A file holds the parameters under their checkpoint names, `tokens` (B, T + 1) I32, `logits`
(B, T, V), `loss` (1), `grad.<parameter>` for every trained parameter (none where the scale is for
evaluation only), and the run config as JSON under the metadata key "config". Where positions are
random in training, loss and gradients are those at `positions` (B, T) or (layers, B, T) I32, the
logits those of an evaluation. Where rows have lengths ("data"), what is behind is padding, whose
targets do not count. Parameters are exact in fp32, for comparison with an fp32 model. normalizer_<name>, name a
normalizer's, holds its golden rows too (normalizers.py): `rows.<what>`, and metadata "rows".
"""

import argparse
import json
import math
import pathlib
import sys
import zlib

import numpy as np
import torch

import decoder
import mixes
import normalizers
import priors
import safetensors_io

BATCH, DOCUMENT_START = 2, 0
NOPE, ALIBI, SINUSOIDAL = {"name": "nope"}, {"name": "alibi"}, {"name": "sinusoidal"}
NONE, ENTROPY = {"name": "none"}, {"name": "entropy"}
GELU, GEGLU, SWIGLU, GELU_ERF, RELU = "gelu", "geglu", "swiglu", "gelu_erf", "relu"
MAX_BYTES = 200_000
MARGIN = 1e-4  # of logits from where a key enters or leaves a support


def rope(theta, scaling="none", factor=1.0, name="rope"):
    return {"name": name, "theta": theta, "scaling": scaling, "factor": factor}


def randomized(prior, length=0, **options):
    return {**prior, "randomized": True, "randomized_length": length, **options}


def learned(positions):
    return {"name": "learned", "positions": positions}


def nape(slopes="exponential", slope_heads="H/2"):
    return {"name": "nape", "slopes": slopes} | (
        {} if slope_heads == "H/2" else {"slope_heads": slope_heads})


def kerple(kernel="logarithmic"):
    return {"name": "kerple", "kernel": kernel}


def t5(share=True, gain="1"):
    return {"name": "t5", "share": share} | ({} if gain == "1" else {"gain": gain})


def fire(threshold_length, negative_slope=0):
    return {"name": "fire", "threshold_length": threshold_length} | (
        {"negative_slope": negative_slope} if negative_slope else {})


def cope(positions):
    return {"name": "cope", "positions": positions}


def bam(init="uniform", train=priors.THETAS, share=False):
    return {"name": "bam", "init": init, "train": train, "share": share}


def dape(base, variant="concat_residual", hidden=5):
    return {"name": "dape", "base": base, "variant": variant, "hidden": hidden}


def ssmax(scale_bias="auto", offset=0, delta=0):
    return {"name": "ssmax", "init": 1.0, "init_std": 0.0, "offset": offset,
            "scale_bias": scale_bias} | ({"delta": delta} if delta else {})


def sentmax(train_gamma=True, delta=1.0, scale_bias="auto"):
    return {"name": "sentmax", "delta": delta, "gamma": 0.0, "gamma_std": 0.1,
            "train_gamma": train_gamma, "scale_bias": scale_bias}


def constant(t):
    return {"name": "constant", "t": t, "scale_bias": "auto"}


def adaptive(bias=False, delta=1.0, g=2.0, scale_bias="auto"):
    return {"name": "adaptive", "delta": delta, "g": g, "bias": bias, "scale_bias": scale_bias}


def by_length(lengths):
    return {"name": "by_length", "lengths": lengths, "scale_bias": "auto"}


def entmax(alpha, learned=False):
    return {"name": "entmax", "alpha": alpha, "learned": learned}


def topk(k, of="row"):
    return {"name": "topk", "k": k, "of": of}


STICK_BREAKING = {"name": "stick_breaking"}


def config(prior, scale=NONE, *, normalizer=None, mask=False, window=0, heads=3, kv=None, head_dim=8,
           hidden=28, vocab=41, T=24, trained=None, layers=2, mlp=SWIGLU, norm="rmsnorm", eps=1e-5,
           tied=False, bias=False, width=None, norm_position="pre", embed_scale=False, classes=0,
           lengths=None, **attention):
    """T tokens a row; `trained`: the training length, where it is another. `width`: where it is not
    heads times head_dim. `bias`: a list of parts, or for all but the head. `classes`: where targets
    are no ids. lengths: of the rows, where they have padding."""
    length = {"length": T} if trained else {}
    length |= {"lengths": lengths} if lengths else {}
    block = {"head_dim": head_dim} if width else {}
    block |= {"norm_position": norm_position} if norm_position != "pre" else {}
    block |= {"embed_scale": True} if embed_scale else {}
    block |= {"classes": classes} if classes else {}
    own = {"normalizer": normalizer} if normalizer else {}
    return {
        "model": {
            "vocab": vocab, "width": width or heads * head_dim, "layers": layers, "heads": heads,
            "kv_heads": kv or heads, "mlp": {"kind": mlp, "hidden": hidden},
            "norm": {"kind": norm, "eps": eps}, "tied": tied, "bias": bias, **block,
            "attention": {"prior": prior, "scale": scale, "window": window,
                          "document_mask": mask, **own, **attention}},
        "data": {"sequence_length": trained or T, "document_start": DOCUMENT_START, **length}}


GROUPED = {"heads": 4, "kv": 2, "hidden": 16, "vocab": 29}
SMALL = {"heads": 4, "kv": 2, "hidden": 12, "vocab": 23}
TINY = {"heads": 2, "hidden": 12, "vocab": 19}
ODD = {"heads": 4, "head_dim": 6, "hidden": 21, "vocab": 53, "T": 19}

CASES = {
    "nope": config(NOPE),
    "nope_ssmax_offset": config(NOPE, ssmax(offset=1), mask=True),
    "nope_ssmax_delta": config(NOPE, ssmax(offset=1, delta=1), mask=True, **SMALL),
    "nope_bias": config(NOPE, bias=True, mask=True, hidden=25, vocab=37, eps=1e-4),
    "rope": config(rope(10000.0), **GROUPED),
    "rope_grouped_layernorm_bias_gelu_tied": config(
        rope(500000.0), heads=4, kv=2, hidden=24, vocab=37, mlp=GELU, norm="layernorm", bias=True,
        tied=True),
    "rope_odd": config(rope(500000.0), mask=True, window=7, **ODD),
    "rope_linear": config(rope(10000.0, "linear", 2.5), **GROUPED),
    "rope_ntk": config(rope(10000.0, "ntk", 4.0), mask=True, **GROUPED),
    "rope_yarn": config(rope(50.0, "yarn", 8.0), trained=8, **GROUPED),
    "rope_llama3": config(rope(50.0, "llama3", 8.0), trained=8, **GROUPED),
    "rope_randomized": config(randomized(rope(50.0)), mask=True, heads=4, kv=2, head_dim=4,
                              hidden=12, vocab=23),
    "rope_randomized_linear": config(randomized(rope(50.0, "linear", 2.5), 30), window=7, heads=2,
                                     hidden=12, vocab=23),
    "rope_randomized_step": config(randomized(rope(50.0), 70, randomized_draw="step"), heads=4, kv=2,
                                   head_dim=4, hidden=12, vocab=23),
    "learned_randomized": config(randomized(learned(0), 60), heads=2, hidden=12, vocab=23),
    "sinusoidal_randomized_step": config(randomized(SINUSOIDAL, 90, randomized_draw="step"),
                                         heads=2, hidden=12, vocab=23, embed_scale=True),
    "alibi_randomized": config(randomized(ALIBI, 80), mask=True, **SMALL),
    "transformer_xl_randomized": config(randomized({"name": "transformer_xl"}, 50), mask=True,
                                        head_dim=6, **SMALL),
    "dape_alibi_randomized": config(dape(randomized(ALIBI, 40)), **SMALL),
    "rope_local": config(rope(10000.0, name="rope_local"), window=11, **GROUPED),
    "alibi_window": config(ALIBI, window=9, heads=6, kv=2, hidden=16, vocab=29, layers=1),
    "alibi_ssmax": config(ALIBI, ssmax("false"), mask=True, window=5),
    "alibi_ssmax_scale_bias": config(ALIBI, ssmax("true")),
    "bam": config(bam(), mask=True),
    "bam_ssmax": config(bam(), ssmax(), mask=True, **GROUPED),
    "bam_ssmax_content": config(bam(), ssmax("false"), mask=True),
    "bam_ssmax_odd": config(bam(), ssmax(), mask=True, **ODD),
    "bam_shared": config(bam(share=True), mask=True),
    "bam_alpha_beta": config(bam(train=priors.THETAS[:2]), norm="layernorm"),
    "bam_beta_only": config(bam("laplace", priors.THETAS[1:2]), mask=True, heads=2),
    "bam_extreme_beta": config(bam(), **GROUPED),
    "bam_bounded": config(bam(), **GROUPED),
    "nape_ssmax": config(nape(), ssmax(), mask=True, heads=5, head_dim=4, hidden=16, vocab=29),
    "nape_harmonic": config(nape("harmonic"), **GROUPED),
    "nape_halving": config(nape("halving"), heads=7, head_dim=4, hidden=12, vocab=23),
    "nape_slopes_of_all": config(nape(slope_heads="H"), ssmax(), heads=6, head_dim=4, hidden=12,
                                 vocab=23),
    "nape_sentmax": config(nape(), sentmax(), mask=True, **GROUPED),
    "bam_sentmax": config(bam(), sentmax(delta=0.5, scale_bias="true"), mask=True, **GROUPED),
    "nope_sentmax_gamma": config(NOPE, sentmax(False), mask=True),
    "alibi_constant": config(ALIBI, constant(0.7), **GROUPED),
    "nope_by_length": config(NOPE, by_length(24), mask=True, **GROUPED),
    "nope_adaptive": config(NOPE, adaptive(), mask=True, hidden=21, vocab=37),
    "bam_adaptive_bias": config(bam(), adaptive(True, 0.5, 1.5, "true"), bias=True, window=9,
                                **SMALL),
    "nape_adaptive": config(nape(), adaptive(True), mask=True, **SMALL),
    "cable_adaptive": config({"name": "cable"}, adaptive(delta=0.5, g=1.0), mask=True, **SMALL),
    "alibi_entropy": config(ALIBI, ENTROPY, mask=True, window=15, **GROUPED),
    "rope_entropy": config(rope(10000.0), ENTROPY, **GROUPED),
    "nape_entropy": config(nape(), ENTROPY, mask=True, **ODD),
    "kcable_entropy": config({"name": "kcable"}, ENTROPY, mask=True, **ODD),
    "fire_entropy": config(fire(7), ENTROPY, mask=True, **SMALL),
    "kerple": config(kerple(), mask=True, **GROUPED),
    "kerple_power_ssmax": config(kerple("power"), ssmax(), mask=True),
    "t5": config(t5(), mask=True, T=70, hidden=16, vocab=29),
    "t5_gain": config(t5(gain="sqrt(D)"), ssmax("true"), **ODD),
    "t5_layers": config(t5(False), ssmax("true"), **ODD),
    "fire": config(fire(0), mask=True, **SMALL),
    "fire_ssmax": config(fire(7), ssmax("true"), mask=True, window=9, **ODD),
    "cope": config(cope(6), mask=True, **SMALL),
    "cope_ssmax_bias": config(cope(4), ssmax("true"), window=9, **GROUPED),
    "cope_sentmax": config(cope(9), sentmax(), mask=True, **ODD),
    "cable": config({"name": "cable"}, mask=True, **SMALL),
    "cable_ssmax_bias": config({"name": "cable"}, ssmax("true"), bias=True, hidden=21, vocab=37),
    "kcable": config({"name": "kcable"}, mask=True, window=9, **ODD),
    "kcable_sentmax": config({"name": "kcable"}, sentmax(), **SMALL),
    "cable_content_1": config({"name": "cable", "content_scale": "1"}, mask=True, **SMALL),
    "kcable_content_width_sentmax_bias": config(
        {"name": "kcable", "content_scale": "1/sqrt(C)"}, sentmax(scale_bias="true"), window=9,
        **SMALL),
    "transformer_xl": config({"name": "transformer_xl"}, mask=True, head_dim=6, **SMALL),
    "transformer_xl_ssmax_head_dim": config(
        {"name": "transformer_xl"}, ssmax("true"), window=9, bias=True, width=18, heads=4, kv=2,
        head_dim=6, hidden=12, vocab=23),
    "layers_rope_local_nope_bam_ssmax": config(
        [rope(10000.0, name="rope_local"), NOPE, bam()], ssmax(), mask=True, layers=3, heads=4,
        kv=2, head_dim=6, hidden=12, vocab=19, T=22, trained=8),
    "layers_cable_alibi": config([{"name": "cable"}, ALIBI], mask=True, bias=True, **SMALL),
    "layers_t5_nape_kcable_sentmax": config(
        [t5(), nape(), {"name": "kcable"}, t5()], sentmax(), mask=True, window=9, layers=4,
        heads=4, kv=1, head_dim=4, hidden=12, vocab=19),
    "dape_kerple": config(dape(kerple()), mask=True, **SMALL),
    "dape_kerple_power_ssmax": config(dape(kerple("power"), "add_residual"), ssmax("true"),
                                      mask=True, window=9, **SMALL),
    "dape_fire_concat": config(dape(fire(7, 0.01), "concat", 4), mask=True, **TINY),
    "dape_alibi_bias_only": config(dape(ALIBI, "bias_only"), ssmax("false"), **SMALL),
    "dape_rope": config(dape(rope(10000.0)), mask=True, bias=True, **SMALL),
    "dape_cable_adaptive": config(dape({"name": "cable"}), adaptive(), mask=True, **SMALL),
    "layers_dape_nape_dape_t5": config(
        [dape(nape(), hidden=6), ALIBI, dape(t5(), "concat"), NOPE], sentmax(), mask=True,
        layers=4, heads=4, kv=1, head_dim=4, hidden=12, vocab=19),
    "learned": config(learned(26), mask=True, mlp=GEGLU, hidden=20),
    "sinusoidal_bam": config({"name": "sinusoidal", "variant": "bam"}, mask=True, **SMALL),
    "sinusoidal": config(SINUSOIDAL, mask=True, mlp=GELU, hidden=40, norm="layernorm", bias=True),
    "block_post_sinusoidal_relu": config(
        SINUSOIDAL, mask=True, mlp=RELU, hidden=25, norm="layernorm", bias=True, embed_scale=True,
        norm_position="post", layers=3, heads=2, head_dim=6, vocab=31),
    "block_post_cable_tied": config({"name": "cable"}, ssmax(), norm_position="post", tied=True,
                                    **SMALL),
    "block_both_gemma": config(
        rope(10000.0), mlp=GEGLU, eps=1e-6, norm_position="both", embed_scale=True, width=20,
        heads=3, head_dim=8, hidden=22, vocab=31),
    "block_both_adaptive_bias": config(
        {"name": "nape", "slopes": "harmonic"}, adaptive(True), mask=True, bias=True,
        norm="layernorm", norm_position="both", head_dim=6, **SMALL),
    "block_head_dim_gelu_erf_tied": config(
        rope(10000.0), mlp=GELU_ERF, width=18, heads=4, kv=2, head_dim=6, hidden=24, vocab=31,
        tied=True, bias=True, embed_scale=True),
    "block_bias_mlp_head_classes": config(
        rope(100.0), mlp=RELU, norm="layernorm", norm_position="post", embed_scale=True,
        bias=["mlp", "norm", "head"], classes=5, head_dim=6, heads=4, kv=2, hidden=30, vocab=23),
    "block_bias_attention": config({"name": "cable"}, norm="layernorm", bias=["attention"],
                                   mask=True, **SMALL),
    "block_bias_head_tied": config(ALIBI, bias=["head"], tied=True, **SMALL),
    "block_head_dim_learned": config(learned(26), mask=True, mlp=GELU_ERF, width=26, heads=5,
                                     head_dim=4, hidden=24, vocab=31, embed_scale=True),
}

def both_sides(prior, *choices, **options):
    return config(prior, *choices, causal=False, T=18, heads=4, kv=2, head_dim=4, hidden=12,
                  vocab=19, **options)


PADDED = {"lengths": [18, 11]}

CASES |= {"bidirectional_" + name: c for name, c in {
    "nope_ssmax": both_sides(NOPE, ssmax(offset=1), **PADDED),
    "rope": both_sides(rope(100.0), mask=True),
    "rope_randomized": both_sides(randomized(rope(50.0)), **PADDED),
    "rope_local": both_sides(rope(100.0, name="rope_local"), window=5, mask=True),
    "alibi": both_sides(ALIBI, **PADDED),
    "alibi_randomized": both_sides(randomized(ALIBI), **PADDED),
    "alibi_symmetric_entropy": both_sides({"name": "alibi", "asymmetry": 0.0}, ENTROPY, mask=True),
    "nape_adaptive": both_sides(nape(), adaptive(True), **PADDED),
    "bam_ssmax": both_sides(bam(), ssmax(), mask=True, **PADDED),
    "kerple": both_sides(kerple(), **PADDED),
    "kerple_power_sentmax": both_sides(kerple("power"), sentmax(), mask=True, window=7),
    "t5": both_sides(t5(), by_length(18), mask=True),
    "fire": both_sides(fire(7), mask=True),
    "fire_window_ssmax": both_sides(fire(0), ssmax("true"), window=6, **PADDED),
    "cable": both_sides({"name": "cable"}, mask=True),
    "cable_ssmax_bias": both_sides({"name": "cable"}, ssmax("true"), **PADDED),
    "kcable": both_sides({"name": "kcable"}, mask=True, **PADDED),
    "transformer_xl": both_sides({"name": "transformer_xl"}, ssmax("true"), mask=True),
    "transformer_xl_padded": both_sides({"name": "transformer_xl"}, window=9, **PADDED),
    "transformer_xl_randomized": both_sides(
        randomized({"name": "transformer_xl"}, 40), mask=True),
    "dape_alibi_randomized_classes": both_sides(
        dape(randomized(ALIBI, 70)), mlp=RELU, norm="layernorm", norm_position="post",
        embed_scale=True, bias=["mlp", "norm", "head"], classes=5, **PADDED),
    "dape_kerple": both_sides(dape(kerple()), ssmax(), **PADDED),
    "dape_fire": both_sides(dape(fire(7), "add_residual"), mask=True),
    "dape_alibi": both_sides(dape(ALIBI, "concat"), **PADDED),
    "learned": both_sides(learned(20), mask=True, **PADDED),
    "sinusoidal_post": both_sides(
        SINUSOIDAL, mlp=GELU, norm="layernorm", bias=True, embed_scale=True, norm_position="post",
        **PADDED),
    "layers": both_sides([{"name": "cable"}, ALIBI], mask=True, **PADDED),
}.items()}

# Every prior has a case.
ABOUT = {decoder.prior_of(c, layer)["name"] for c in CASES.values()
         for layer in range(c["model"]["layers"])}
CASES |= {name: config({"name": name}, mask=True, **SMALL)
          for name in priors.PARAMETERS if name not in ABOUT}

# Per head, in every layer, where a case is about particular values.
THETA = {
    "bam_alpha_beta": {"theta_mu": [0, 0, 0]},
    "bam_beta_only": {"theta_alpha": [math.log(2.0 ** -4), math.log(2.0 ** -8)],
                      "theta_mu": [0, 0]},
    # The self key is hugely negative (beta -0.6, mu 0), far keys are (beta 2.5, partly past the
    # bound); with mu = 0 the argument's sign at the self key is 0.
    "bam_extreme_beta": {"theta_alpha": [0.3, 1.75, -0.4, -3.5],
                         "theta_beta": [-0.6, 2.5, -0.6, 2.5], "theta_mu": [0, 0, 0.4, -0.3]},
    # Heads 0 and 2 are past the bound at every key but, for head 0, the self key.
    "bam_bounded": {"theta_alpha": [10, -0.5, 10, 0.2], "theta_beta": [0.2, 0.7, -0.1, 0.4],
                    "theta_mu": [0, 0.3, 0.25, -0.2]},
}


# File names of these begin with normalizer_ instead of model_.
NORMALIZED = {
    "nope_entmax": config(NOPE, normalizer=entmax(1.5), **GROUPED),
    "alibi_entmax": config(ALIBI, normalizer=entmax(1.5), mask=True, **GROUPED),
    "bam_entmax": config(bam(), normalizer=entmax(1.5), mask=True, **GROUPED),
    "bam_ssmax_entmax": config(bam(), ssmax(), normalizer=entmax(1.5), mask=True, **GROUPED),
    "nape_adaptive_entmax": config(nape(), adaptive(True), normalizer=entmax(1.5), mask=True,
                                   **SMALL),
    "cable_entmax_1.7": config({"name": "cable"}, normalizer=entmax(1.7), mask=True, **SMALL),
    "fire_entmax_2": config(fire(0), normalizer=entmax(2), mask=True, **SMALL),
    "kcable_sentmax_entmax_1.3": config({"name": "kcable"}, sentmax(), normalizer=entmax(1.3),
                                        **SMALL),
    "t5_entmax_3": config(t5(), normalizer=entmax(3), mask=True, **ODD),
    "rope_entmax_learned": config(rope(10000.0), normalizer=entmax(1.5, True), **GROUPED),
    "nape_adaptive_entmax_learned": config(nape(), adaptive(True), normalizer=entmax(2, True),
                                           mask=True, **SMALL),
    "dape_alibi_entmax": config(dape(ALIBI), ssmax(), normalizer=entmax(1.5), mask=True, **SMALL),
    "nope_topk": config(NOPE, normalizer=topk(4), mask=True, **GROUPED),
    "bam_ssmax_topk_half": config(bam(), ssmax(), normalizer=topk("n/2"), mask=True, **GROUPED),
    "alibi_topk_sequence": config(ALIBI, normalizer=topk("n/2", "sequence"), **GROUPED),
    "nope_stick_breaking": config(NOPE, normalizer=STICK_BREAKING, **GROUPED),
    "alibi_stick_breaking": config(ALIBI, normalizer=STICK_BREAKING, mask=True, **GROUPED),
    "cable_stick_breaking": config({"name": "cable"}, normalizer=STICK_BREAKING, mask=True,
                                   **SMALL),
    "fire_stick_breaking": config(fire(0), normalizer=STICK_BREAKING, mask=True, **SMALL),
    "cope_stick_breaking": config(cope(5), normalizer=STICK_BREAKING, mask=True, **SMALL),
    "bam_stick_breaking": config(bam(), normalizer=STICK_BREAKING, mask=True, window=9, **GROUPED),
}

NORMALIZED |= {"bidirectional_" + name: c for name, c in {
    "bam_ssmax_entmax": both_sides(bam(), ssmax(), normalizer=entmax(1.5), mask=True),
    "kcable_entmax_learned": both_sides({"name": "kcable"}, normalizer=entmax(1.5, True), **PADDED),
    "alibi_topk_half": both_sides(ALIBI, normalizer=topk("n/2"), mask=True),
    "nope_topk_sequence": both_sides(NOPE, normalizer=topk("n/2", "sequence"), window=8, **PADDED),
}.items()}

# Every normalizer has a small model beside its golden rows.
NORMALIZED |= {name: config(ALIBI, normalizer={"name": name, **options}, mask=True, **TINY)
               for name, (options, _) in normalizers.GOLDEN.items()}

# What queries are multiplied by, where rows would keep one key or gradients jump.
SHARPNESS = {"bam_entmax": 0.8, "bam_ssmax_entmax": 0.5, "nape_adaptive_entmax": 0.7,
             "nape_adaptive_entmax_learned": 0.4, "cable_entmax_1.7": 0.7, "fire_entmax_2": 0.6,
             "bidirectional_alibi_topk_half": 0.6, "t5_entmax_3": 0.25, "dape_alibi_entmax": 0.6}


def has_bias(m, part):
    """Whether a part of model m has biases: attention, mlp, norm or head."""
    return part in m["bias"] if isinstance(m["bias"], list) else m["bias"] and part != "head"


def parameter_shapes(c):
    """{checkpoint name: shape} of every parameter of config c."""
    m = c["model"]
    V, C, H, hidden = m["vocab"], m["width"], m["heads"], m["mlp"]["hidden"]
    D = m.get("head_dim") or C // H
    QD, KD = H * D, m["kv_heads"] * D
    place = m.get("norm_position", "pre")
    shapes = {"model.embed_tokens.weight": (V, C)}
    if not m["tied"]:
        shapes["lm_head.weight"] = (m.get("classes", V), C)
    if has_bias(m, "head"):
        shapes["lm_head.bias"] = (m.get("classes", V),)
    if decoder.prior_of(c, 0)["name"] == "learned":
        own = decoder.prior_of(c, 0)
        rows = own["randomized_length"] if own.get("randomized") else own["positions"]
        shapes["model.embed_positions.weight"] = (rows, C)
    linears, norms = {}, [] if place == "post" else ["model.norm"]
    for layer in range(m["layers"]):
        path, prior = f"model.layers.{layer}", decoder.prior_of(c, layer)
        of_block = {"pre": ["input", "post_attention"],
                    "post": ["post_attention", "post_feedforward"],
                    "both": ["input", "post_attention", "pre_feedforward", "post_feedforward"]}
        norms += [f"{path}.{name}_layernorm" for name in of_block[place]]
        rows = {"q": (QD, C), "k": (KD, C), "v": (KD, C), "o": (C, QD)}
        linears.update({f"{path}.self_attn.{x}_proj": rows[x] for x in rows})
        linears[path + ".mlp.up_proj"] = (hidden, C)
        linears[path + ".mlp.down_proj"] = (C, hidden)
        if m["mlp"]["kind"] in (SWIGLU, GEGLU):
            linears[path + ".mlp.gate_proj"] = (hidden, C)
        scale = m["attention"]["scale"]
        of_scale = {"ssmax": {"s": (H,)}, "sentmax": {"beta": (H,), "gamma": (H,)},
                    "by_length": {"t": (H, scale.get("lengths"))},
                    "adaptive": {f"{x}_{y}": (H, C) if y == "weight" else (H,)
                                 for x in ("beta", "gamma")
                                 for y in (("weight", "bias") if scale.get("bias") else ("weight",))}}
        for name, shape in of_scale.get(scale["name"], {}).items():
            shapes[f"{path}.self_attn.scale.{name}"] = shape
        if normalizer_of(c).get("learned"):
            shapes[path + ".self_attn.normalizer.alpha"] = (H,)
        owner = "model" if prior.get("share") else path + ".self_attn"
        if mix := decoder.mix_of(c, layer):
            for name, shape in mixes.parameter_shapes(mix, H).items():
                shapes[f"{path}.self_attn.mix.{name}"] = shape
        for name, shape in priors.PARAMETERS.get(prior["name"], lambda *_: {})(H, C, D, prior).items():
            shapes[f"{owner}.prior.{name}"] = shape
    for name, shape in linears.items():
        shapes[name + ".weight"] = shape
        if has_bias(m, "attention" if ".self_attn." in name else "mlp"):
            shapes[name + ".bias"] = shape[:1]
    for name in norms:
        shapes[name + ".weight"] = (C,)
        if has_bias(m, "norm") and m["norm"]["kind"] == "layernorm":
            shapes[name + ".bias"] = (C,)
    return shapes


def random_parameter(rng, case, c, name, shape):
    """Values that leave no term trivial: norms away from 1, biases and theta_mu away from 0."""
    last = name.split(".")[-1]
    if last == "alpha":  # log(exp(alpha - 1) - 1) is where it begins
        value = rng.normal(math.log(math.expm1(normalizer_of(c)["alpha"] - 1)), 0.3, shape)
    elif last in THETA.get(case, {}):
        value = np.array(THETA[case][last], float)
    elif ".prior." in name and (own := priors.random_value(rng, last, shape)) is not None:
        value = own
    elif last in ("s", "t"):
        value = rng.normal(1.0, 0.3, shape)
    elif last in ("beta", "gamma"):
        value = rng.uniform(0.1, 1.0, shape) if last == "beta" else rng.normal(0, 0.4, shape)
    elif last in ("beta_weight", "gamma_weight"):
        value = rng.normal(0, 0.5 / math.sqrt(shape[1]), shape)
    elif last.endswith("bias") or ".mix.bias" in name:
        value = rng.normal(0, 0.3, shape)
    elif len(shape) == 1:
        value = rng.normal(1.0, 0.3, shape)
    elif "embed" in name:
        value = rng.normal(0, 0.4, shape)
    else:
        value = rng.normal(0, 1.2 / math.sqrt(shape[1]), shape)
        if "q_proj" in name:
            value = value * SHARPNESS.get(case, 1)
    return torch.from_numpy(value.astype(np.float32).astype(np.float64))


def random_tokens(rng, c):
    """(B, T + 1). Row 0 begins inside a document and holds a document of one token; row 1 begins
    with a document and ends with the first token of another, which is a target only."""
    T = c["data"].get("length", c["data"]["sequence_length"])
    tokens = rng.integers(1, c["model"]["vocab"], (BATCH, T + 1))
    tokens[0, [5, 6, 14]] = DOCUMENT_START
    tokens[1, [0, 9, T]] = DOCUMENT_START
    return torch.from_numpy(tokens)


def random_positions(rng, c):
    """(B, T), ascending in each row; of a step: the same in all rows, with a layer's dimension before
    them, 1 for positions that are added to the embedding. None where nothing is random."""
    prior, T = decoder.prior_of(c, 0), c["data"]["sequence_length"]
    if not prior.get("randomized"):
        return None
    length = prior["randomized_length"] or 4 * T
    distances = prior["name"] in ("alibi", "transformer_xl")
    draw = lambda first, n: np.sort(rng.permutation(length - first)[:n]) + first
    if not distances and prior.get("randomized_draw", "sequence") == "sequence":
        return torch.from_numpy(np.stack([draw(0, T) for _ in range(BATCH)]))
    layers = 1 if prior["name"] in ("learned", "sinusoidal") else c["model"]["layers"]
    rows = [np.append(0, draw(1, T - 1)) if distances else draw(0, T) for _ in range(layers)]
    return torch.from_numpy(np.stack([np.stack([row] * BATCH) for row in rows]))


def is_trained(c, name):
    if c["model"]["attention"]["scale"] == ENTROPY:
        return False
    last = name.split(".")[-1]
    if last == "gamma":
        return c["model"]["attention"]["scale"]["train_gamma"]
    if ".prior." not in name:
        return True
    layer = int(name.split(".")[2]) if name.startswith("model.layers.") else 0
    return priors.is_trained(decoder.prior_of(c, layer), last)


def normalizer_of(c):
    return c["model"]["attention"].get("normalizer", normalizers.SOFTMAX)


def is_clear(p, c, tokens):
    """Whether no key is so near to entering or leaving a support that an fp32 model may do
    otherwise. Asserts that rows leave keys out and keep several."""
    choice = normalizer_of(c)
    distances, rows, supports = [], [], []

    def watch(theta, h, z, visible, weights):
        n = visible.sum(-1)
        rows.append(n)
        supports.append((weights > 0).sum(-1))
        if choice["name"] == "entmax":
            x = normalizers.levels(z, normalizers.alpha_of(choice, theta, h), visible)
            distances.append(x[n > 1].abs().nan_to_num(math.inf).min())
        if choice["name"] == "topk":
            kept = normalizers.keys_kept(choice, visible)
            falling = z.masked_fill(~visible, -math.inf).sort(descending=True).values
            k = kept[n > kept][:, None]
            gap = (falling[n > kept].gather(1, k - 1) - falling[n > kept].gather(1, k)).abs()
            # Keys of one token in one context are equal, whichever of them is kept.
            distances.append(gap[gap > 1e-12].min())

    decoder.logits(p, c, tokens, watch=watch)
    if not distances:
        return True
    n, support = torch.stack(rows), torch.stack(supports)
    share, kept = (support / n)[n > 3].mean(), support[n > 3].double().mean()
    assert 0.15 < share < 0.85 and kept > 1.6, f"{choice}: {kept:.2f} keys, {share:.2f} of a row's"
    return min(distances) > MARGIN


def is_smooth(p, c, tokens):
    """Whether the gradients stay where they are when matrices are rounded to bf16: tests ask for
    less than 24 roundings."""
    matrix = lambda name: p[name].dim() > 1 and ".prior." not in name and ".scale." not in name
    rounded = {name: x.bfloat16().double() if matrix(name) else x for name, x in p.items()}
    trained = [name for name in p if is_trained(c, name)]
    if not trained:
        return True
    gradients = []
    for q in (p, rounded):
        q = {name: x.clone().requires_grad_(name in trained) for name, x in q.items()}
        loss = decoder.mean_loss(q, c, tokens)
        of = torch.autograd.grad(loss, [q[name] for name in trained])
        gradients.append(torch.cat([x.reshape(-1) for x in of]))
    return (gradients[1] - gradients[0]).norm() < 12 * 2 ** -8 * gradients[0].norm()


def check_gradients(case, rng, p, c, tokens, positions, gradients, h=1e-6):
    """Central differences at the largest entry and at two random entries of every gradient."""
    for name, gradient in gradients.items():
        flat, grad = p[name].detach().reshape(-1), gradient.reshape(-1)
        entries = {int(grad.abs().argmax()), *rng.integers(0, len(flat), 2).tolist()}
        for entry in (range(len(flat)) if len(flat) <= 8 else entries):
            losses = []
            for step in (h, -h):
                moved = flat.clone()
                moved[entry] += step
                q = {**p, name: moved.view(gradient.shape)}
                with torch.no_grad():
                    losses.append(decoder.mean_loss(q, c, tokens, positions))
            difference = (losses[0] - losses[1]) / (2 * h)
            assert abs(difference - grad[entry]) < 1e-8 + 1e-6 * abs(grad[entry]), (
                f"{case}: {name}[{entry}] gradient {grad[entry]}, differences {difference}")


def check_independence(case, rng, p, c, tokens, logits):
    """No position sees its future, or where attention is bidirectional padding, and under a document
    mask no document sees another."""
    T = tokens.shape[1]
    lengths = c["data"].get("lengths", [T] * BATCH)
    for b, length in enumerate(lengths):
        other = tokens.clone()
        other[b, length:] = torch.from_numpy(rng.integers(0, c["model"]["vocab"], T - length))
        same = decoder.logits(p, c, other)[b, :length]
        assert torch.equal(same, logits[b, :length]), f"{case}: padding is seen"
    for cut in (1, T // 2, T - 1) if decoder.is_causal(c) else ():
        other = tokens.clone()
        other[:, cut:] = torch.from_numpy(rng.integers(0, c["model"]["vocab"], (BATCH, T - cut)))
        same = decoder.logits(p, c, other)[:, :cut]
        assert torch.allclose(same, logits[:, :cut], rtol=0, atol=1e-11), f"{case}: not causal"
    if not c["model"]["attention"]["document_mask"]:
        return
    unpadded = {**c, "data": {name: x for name, x in c["data"].items() if name != "lengths"}}
    for b in range(BATCH):
        end_of_row = lengths[b]
        starts = [0] + [i for i in range(1, end_of_row) if tokens[b, i] == DOCUMENT_START]
        starts.append(end_of_row)
        assert len(starts) > 2, f"{case}: row {b} is one document"
        for begin, end in zip(starts, starts[1:]):
            alone = decoder.logits(p, unpadded, tokens[b:b + 1, begin:end])[0]
            assert torch.allclose(alone, logits[b, begin:end], rtol=0, atol=1e-11), (
                f"{case}: document {begin}..{end} of row {b} differs from the same one alone")


def random_model(case, c):
    """The generator, parameters and tokens of a case: the first ones that are clear."""
    for attempt in range(100):
        seed = f"{case} {attempt}" if attempt else case
        rng = np.random.Generator(np.random.PCG64(zlib.crc32(seed.encode())))
        shapes = parameter_shapes(c)
        p = {name: random_parameter(rng, case, c, name, shapes[name]) for name in sorted(shapes)}
        tokens = random_tokens(rng, c)
        kinks = c["model"]["mlp"]["kind"] == RELU or any(
            decoder.mix_of(c, layer) for layer in range(c["model"]["layers"]))
        plain = normalizer_of(c) == normalizers.SOFTMAX and not kinks
        if (plain or is_clear(p, c, tokens[:, :-1])) and (
                (plain and decoder.is_causal(c)) or is_smooth(p, c, tokens)):
            return rng, p, tokens
    raise AssertionError(f"{case}: 100 models, none of them clear")


def make(case, c):
    """({name: array}, metadata) of one case, checked."""
    rng, p, tokens = random_model(case, c)
    trained = [name for name in p if is_trained(c, name)]
    for name in trained:
        p[name].requires_grad_()
    positions = random_positions(rng, c)
    loss = decoder.mean_loss(p, c, tokens, positions)
    gradients = {}
    if trained:
        gradients = dict(zip(trained, torch.autograd.grad(loss, [p[name] for name in trained])))
    with torch.no_grad():
        logits = decoder.logits(p, c, tokens[:, :-1])
        check_independence(case, rng, p, c, tokens[:, :-1], logits)
    check_gradients(case, rng, p, c, tokens, positions, gradients)
    tensors = {name: value.detach().numpy() for name, value in p.items()}
    tensors.update({"grad." + name: value.numpy() for name, value in gradients.items()})
    tensors.update(tokens=tokens.numpy().astype(np.int32), logits=logits.numpy(),
                   loss=loss.detach().numpy().reshape(1))
    if positions is not None:
        tensors["positions"] = positions.numpy().astype(np.int32)
    metadata = {"config": json.dumps(c, sort_keys=True)}
    if case in normalizers.GOLDEN:
        of_rows, rows = normalizers.golden_rows(case)
        tensors |= of_rows
        metadata["rows"] = json.dumps(rows, sort_keys=True)
    assert all(np.isfinite(x).all() for x in tensors.values()), f"{case}: not finite"
    return tensors, metadata


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Golden logits, losses and gradients.")
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(CASES | NORMALIZED),
                        help="these cases instead of all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    for case, c in (CASES | NORMALIZED).items():
        if options.only and case not in options.only:
            continue
        tensors, metadata = make(case, c)
        kind = "normalizer" if case in NORMALIZED else "model"
        path = options.out / f"{kind}_{case}.safetensors"
        if options.check:
            verdict = "same" if safetensors_io.same(path, tensors, metadata) else "DIFFERS"
            failed += verdict != "same"
        else:
            data = safetensors_io.encode(tensors, metadata)
            assert len(data) < MAX_BYTES, f"{case}: {len(data)} bytes"
            path.write_bytes(data)
            verdict = f"{len(data)} bytes"
        print(f"{case:40} loss {tensors['loss'][0]:.12f}  {verdict}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
