"""Configuration of a model that bamtrain trained, for Hugging Face's transformers."""

from transformers import PretrainedConfig


class BamtrainConfig(PretrainedConfig):
    """A decoder: prior x logit scale x normalizer x mask.

    `priors`: a list of {"name", options, "window", "scale_bias"}; layer l has number
    l % len(priors). `window`: a key is visible iff i - j < window, 0: all are. `scale_bias`: the
    logit scale multiplies the prior's bias too.
    `scale`, `normalizer`: {"name", options}. A normalizer None is softmax. These and the priors have
    "parameters", {name: shape}, where they train any.
    `document_start`: the token that begins a document, where attention, counts of keys and
    positions restart; None: they do not.
    `max_position_embeddings`: the training length.
    `mlp`: "swiglu" or "geglu", which are gated, "gelu" (tanh), "gelu_erf" or "relu".
    `norm`: "rmsnorm" or "layernorm". `norm_position`, f being attention, then the mlp: "pre",
    x += f(norm(x)); "post", x = norm(x + f(x)), and none before the head; "both",
    x += norm(f(norm(x))).
    `bias`: the parts that have biases: "attention", "mlp", "norm" (layernorm), "head".
    `head_dim`: None for hidden_size // num_attention_heads. `embed_scale`: embeddings of tokens are
    multiplied by sqrt(hidden_size).
    """

    model_type = "bamtrain"
    keys_to_ignore_at_inference = ["past_key_values", "cache"]

    def __init__(self, vocab_size=32768, hidden_size=768, num_hidden_layers=12,
                 num_attention_heads=12, num_key_value_heads=12, intermediate_size=3072,
                 head_dim=None, mlp="swiglu", norm="rmsnorm", norm_eps=1e-5, norm_position="pre",
                 embed_scale=False, bias=(),
                 priors=({"name": "nope", "window": 0, "scale_bias": False},),
                 scale=None, normalizer=None, document_start=None, max_position_embeddings=512,
                 tie_word_embeddings=False, use_cache=True, **kwargs):
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = head_dim or hidden_size // num_attention_heads
        self.intermediate_size = intermediate_size
        self.mlp = mlp
        self.norm = norm
        self.norm_eps = norm_eps
        self.norm_position = norm_position
        self.embed_scale = embed_scale
        self.bias = list(bias)
        self.priors = list(priors)
        self.scale = scale or {"name": "none"}
        self.normalizer = normalizer or {"name": "softmax"}
        self.document_start = document_start
        self.max_position_embeddings = max_position_embeddings
        self.use_cache = use_cache
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)
