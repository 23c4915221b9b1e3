"""The models that scripts/check_export.py exports, by name: sections of a run's config."""

from program_schema import mechanism_names

VOCAB = 97


def model(prior="nope", scale="none", mask=True, window=0, normalizer="softmax", **changes):
    """The model section of a config. Names stand for mechanisms with default options."""
    named = lambda m: {"name": m} if isinstance(m, str) else m
    priors = [named(p) for p in prior] if isinstance(prior, list) else named(prior)
    attention = {"prior": priors, "scale": named(scale), "normalizer": named(normalizer),
                 "document_mask": mask, "window": window}
    return {"vocab": VOCAB, "width": 48, "layers": 2, "heads": 4, "kv_heads": 2,
            "mlp": {"kind": "swiglu", "hidden": 64}, **changes, "attention": attention}


def rope(scaling="none", factor=1.0, name="rope", theta=50.0, **options):
    return {"name": name, "theta": theta, "scaling": scaling, "factor": factor, **options}


def entmax(alpha, learned=False):
    return {"name": "entmax", "alpha": alpha, "learned": learned}


def topk(k, of="row"):
    return {"name": "topk", "k": k, "of": of}


BAM = {"name": "bam", "init": "normal", "train": ["theta_alpha", "theta_beta", "theta_mu"]}
GELU, GEGLU = {"kind": "gelu", "hidden": 64}, {"kind": "geglu", "hidden": 64}
GELU_ERF, RELU = {"kind": "gelu_erf", "hidden": 64}, {"kind": "relu", "hidden": 64}
LAYERNORM = {"kind": "layernorm"}
LEARNED = {"name": "learned", "positions": 64}

# A name that begins with "llama" must load as LlamaForCausalLM, one that begins with "gpt2" as
# GPT2LMHeadModel, without code of its own.
CASES = {
    "llama": model(rope()),
    "llama_tied": model(rope(), mask=False, tied=True),
    "llama_bias": model(rope(), bias=True),
    "llama_all_heads": model(rope(theta=500000.0), kv_heads=4,
                             norm={"kind": "rmsnorm", "eps": 1e-3}),
    "llama_linear": model(rope("linear", 2.5)),
    "llama_ntk": model(rope("ntk", 4.0)),
    "llama_yarn": model(rope("yarn", 8.0)),
    "llama_llama3": model(rope("llama3", 8.0)),
    "llama_randomized": model(rope(randomized=True)),
    "gpt2": model(LEARNED, mlp=GELU, norm=LAYERNORM, bias=True, kv_heads=4),
    "gpt2_tied": model(LEARNED, mask=False, mlp=GELU_ERF, norm={"kind": "layernorm", "eps": 1e-3},
                       bias=True, kv_heads=4, tied=True),
    "gpt2_relu": model(LEARNED, mlp=RELU, norm=LAYERNORM, bias=True, kv_heads=4),
    "rope_window": model(rope(), window=9),
    "rope_ssmax": model(rope(), "ssmax"),
    "rope_layernorm": model(rope("yarn", 8.0), norm=LAYERNORM, bias=True),
    "rope_gelu": model(rope("llama3", 8.0), mlp=GELU),
    "rope_linear_geglu": model(rope("linear", 2.5), mlp=GEGLU, tied=True),
    "rope_ntk_sentmax": model(rope("ntk", 4.0), "sentmax"),
    "rope_local": model(rope(name="rope_local")),
    "nope": model("nope"),
    "sinusoidal": model("sinusoidal", mlp=GELU, norm=LAYERNORM, bias=True),
    "learned": model(LEARNED, norm=LAYERNORM),
    "alibi": model("alibi"),
    "alibi_odd_heads": model("alibi", width=48, heads=6, kv_heads=3, window=11),
    "nape": model("nape", "ssmax"),
    "nape_harmonic": model({"name": "nape", "slopes": "harmonic"}, "sentmax", heads=3, kv_heads=1),
    "bam": model(BAM),
    "bam_ssmax": model(BAM, "ssmax"),
    "bam_shared_ssmax_content": model({**BAM, "share": True},
                                      {"name": "ssmax", "scale_bias": "false"}),
    "kerple": model("kerple"),
    "kerple_power": model({"name": "kerple", "kernel": "power"}, {"name": "ssmax", "offset": 1}),
    "t5": model("t5"),
    "t5_layers": model({"name": "t5", "share": False}, {"name": "ssmax", "scale_bias": "true"}),
    "fire": model("fire"),
    "fire_short": model({"name": "fire", "threshold_length": 7}, "ssmax", window=15),
    "cope": model("cope"),
    "cope_5_sentmax": model({"name": "cope", "positions": 5},
                            {"name": "sentmax", "scale_bias": "true"}, window=15),
    "cable": model("cable"),
    "cable_ssmax_bias": model("cable", "ssmax", bias=True),
    "cable_window": model("cable", window=9),
    "kcable": model("kcable", mask=False),
    "cable_content_1": model({"name": "cable", "content_scale": "1"}),
    "kcable_content_width": model({"name": "kcable", "content_scale": "1/sqrt(C)"}, "sentmax"),
    "transformer_xl": model("transformer_xl"),
    "transformer_xl_head_dim": model("transformer_xl", {"name": "ssmax", "scale_bias": "true"},
                                     head_dim=10, window=15, bias=True),
    "dape": model({"name": "dape", "base": {"name": "kerple"}}),
    "dape_fire_concat": model({"name": "dape", "base": {"name": "fire", "negative_slope": 0.01},
                               "variant": "concat", "hidden": 8},
                              "ssmax"),
    "dape_cable_add": model({"name": "dape", "base": "cable", "variant": "add_residual"},
                            {"name": "ssmax", "scale_bias": "true"}, window=15),
    "dape_rope": model({"name": "dape", "base": rope()}),
    "layers_dape_nape_bias_t5": model(
        [{"name": "dape", "base": "nape", "variant": "bias_only"}, "t5"], "adaptive", layers=4),
    "dape_entmax": model({"name": "dape", "base": "alibi"}, normalizer="entmax"),
    "adaptive": model("alibi", "adaptive"),
    "adaptive_bias_bam": model(BAM, {"name": "adaptive", "bias": True, "delta": 0.5, "g": 1.5,
                                     "scale_bias": "true"}),
    "constant": model("alibi", {"name": "constant", "t": 0.7}),
    "by_length": model("nope", {"name": "by_length", "lengths": 64}),
    "layers_cable_bam_nope": model(["cable", BAM, "nope"], "ssmax", layers=3),
    "llama_head_dim": model(rope(), head_dim=16),
    "rope_embed_scale": model(rope(), embed_scale=True, tied=True, init="plain"),
    "post_sinusoidal_relu": model("sinusoidal", mlp=RELU, norm=LAYERNORM, bias=True,
                                  norm_position="post", embed_scale=True),
    "both_gemma": model(rope(), mlp=GEGLU, norm_position="both", embed_scale=True, head_dim=10,
                        heads=5, kv_heads=5, init="plain"),
    "both_cable": model("cable", "ssmax", norm_position="both", bias=True, norm=LAYERNORM),
    "learned_gelu_erf": model(LEARNED, mlp=GELU_ERF, norm=LAYERNORM,
                              embed_scale=True),
    "layers_rope_local_t5": model([rope(name="rope_local", window=7), "t5"], layers=4),
    "entmax": model("alibi", normalizer="entmax"),
    "entmax_17_learned": model(rope(), normalizer=entmax(1.7, True)),
    "entmax_125_cable": model("cable", normalizer=entmax(1.25), bias=True),
    "entmax_fire_window": model("fire", normalizer="entmax", window=9),
    "entmax_cope": model({"name": "cope", "positions": 5}, normalizer="entmax"),
    "sparsemax": model("kerple", normalizer=entmax(2)),
    "sparsemax_bam_ssmax": model(BAM, "ssmax", normalizer=entmax(2)),
    "asentmax": model("nape", "adaptive", normalizer="entmax"),
    "asentmax_learned": model("nape", {"name": "adaptive", "bias": True}, window=15,
                              normalizer=entmax(1.5, True)),
    "topk_32": model("t5", normalizer=topk(32)),
    "topk_4_window": model("alibi", "ssmax", normalizer=topk(4), window=9),
    "topk_half": model(rope(), normalizer=topk("n/2")),
    "topk_half_of_sequence": model("nope", normalizer=topk("n/2", "sequence")),
    "stick_breaking": model("nope", normalizer="stick_breaking"),
    "stick_breaking_rope_window": model(rope(), normalizer="stick_breaking", window=9),
}

# Exported with what evaluation may replace.
REPLACED = {
    "llama": ["model.attention.prior.scaling=yarn", "model.attention.prior.factor=4"],
    "alibi": ["model.attention.scale.name=entropy"],
    "nape_entropy": ["model.attention.scale.name=entropy"],
    "topk_half_of_sequence": ["model.attention.normalizer.of=row"],
}
CASES["nape_entropy"] = model("nape")


def add_missing(schema):
    """Priors and normalizers of the program's schema that no case is about, with default options,
    under their own names."""
    priors = [c["attention"]["prior"] for c in CASES.values()]
    about = {p["name"] for of in priors for p in (of if isinstance(of, list) else [of])}
    CASES.update({name: model(name) for name in mechanism_names(schema, "prior")
                  if name not in about})
    about = {c["attention"]["normalizer"]["name"] for c in CASES.values()}
    CASES.update({name: model("alibi", normalizer=name)
                  for name in mechanism_names(schema, "normalizer") if name not in about})
