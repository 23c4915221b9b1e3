// Keys of a run configuration: model.

#include <algorithm>

#include "config/key_table.h"
#include "normalizers/registry.h"
#include "scales/registry.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key priors() {
  const std::string path = "model.attention.prior";
  Key k{path,
        "positional prior: what position adds to a logit; a list: of the first layers, then over "
        "and over, its length divides model.layers",
        priors_schema(), true};
  k.get = [](const RunConfig& c) { return priors_json(c.model.attention.prior); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.model.attention.prior = read_priors(v, path, origin, c.config_version);
  };
  return k;
}

/// true stands for what it stood for when it was all that a configuration could say.
Key biases() {
  const std::string path = "model.bias";
  std::vector<std::string> names;
  for (const auto& [name, unused] : kBiasPartNames) names.push_back(name);
  const ValueSchema list = set_of(one_of(names));
  Key k{path,
        "which parts have biases: a list of attention and mlp (their linear layers), norm "
        "(layernorm) and head; true: all but the head; that of k moves every logit of a row alike "
        "unless k is rotated: nothing reads it then, and it drifts with the rounding of its "
        "gradient",
        {{"oneOf", {boolean_value(), list}}}};
  k.get = [](const RunConfig& c) -> ordered_json {
    const BiasParts& bias = c.model.bias;
    for (const bool all : {false, true}) {
      if (bias == BiasParts(all)) return all;
    }
    ordered_json parts = ordered_json::array();
    for (const auto& [name, part] : kBiasPartNames) {
      if (bias.*part) parts.push_back(name);
    }
    return parts;
  };
  k.set = [path, list](RunConfig& c, const json& v, const Origin& origin) {
    if (!v.is_array()) {
      check_value(v, boolean_value(), origin.at(path));
      c.model.bias = v.get<bool>();
      return;
    }
    check_value(v, list, origin.at(path));
    c.model.bias = BiasParts();
    for (const auto& [name, part] : kBiasPartNames) {
      c.model.bias.*part = std::find(v.begin(), v.end(), name) != v.end();
    }
  };
  return k;
}

}  // namespace

std::vector<Key> model_keys() {
  return {
      choice<ModelKind>("model.kind",
                        "decoder; or max_retrieval, the model of the task of that name, which is "
                        "one attention between networks of one hidden layer: width is that of the "
                        "attention, mlp theirs, layers and heads are 1, and keys that would do "
                        "nothing are refused",
                        kModelKindNames, FIELD(model.kind)),
      needed(trains_on_shards,
             key("model.vocab",
                 "vocabulary size V, at least the tokenizer's; needed with shards; 0: as many as "
                 "the tasks of data.train have",
                 integer_value(0, kMaxInt32), FIELD(model.vocab))),
      key("model.classes",
          "classes that the head tells apart, where the answers of the tasks of data.train are of "
          "another alphabet than what is read; 0: as many as those tasks have, and model.vocab "
          "with shards",
          integer_value(0, kMaxInt32), FIELD(model.classes)),
      required(
          key("model.width", "embedding width C", integer_value(1, kMaxWidth), FIELD(model.width))),
      required(
          key("model.layers", "number of blocks L", integer_value(1, 4096), FIELD(model.layers))),
      required(key("model.heads",
                   "query heads H; divides model.width unless model.head_dim is given",
                   integer_value(1, 4096), FIELD(model.heads))),
      key("model.kv_heads",
          "key and value heads of grouped-query attention; divides model.heads; 0: as many as "
          "heads",
          integer_value(0, 4096), FIELD(model.kv_heads)),
      key("model.head_dim", "width D of a head; 0: model.width / model.heads",
          integer_value(0, kMaxWidth), FIELD(model.own_head_dim)),
      choice<MlpKind>("model.mlp.kind",
                      "swiglu and geglu (tanh) are gated, with three matrices; gelu (tanh), "
                      "gelu_erf (x Phi(x)) and relu have two",
                      kMlpNames, FIELD(model.mlp.kind)),
      required(key("model.mlp.hidden", "hidden width of the MLP", integer_value(1, kMaxWidth),
                   FIELD(model.mlp.hidden))),
      choice<NormKind>("model.norm.kind", "normalization; model.norm_position: of what",
                       {{"rmsnorm", NormKind::rmsnorm}, {"layernorm", NormKind::layernorm}},
                       FIELD(model.norm.kind)),
      key("model.norm.eps", "added to the variance, in fp32", number_within(kMinEps, kMaxEps),
          FIELD(model.norm.eps)),
      choice<NormPosition>(
          "model.norm_position",
          "where norms stand, f being attention, then the MLP: pre: x += f(norm(x)), and a norm "
          "before the head; post: x = norm(x + f(x)), none before the head; both: x += "
          "norm(f(norm(x))), and one before the head",
          kNormPositionNames, FIELD(model.norm_position)),
      key("model.embed_scale",
          "embeddings of tokens are multiplied by sqrt(C), before those of positions are added; a "
          "tied head is not",
          boolean_value(), FIELD(model.embed_scale)),
      key("model.tied", "the head shares the embedding's matrix", boolean_value(),
          FIELD(model.tied)),
      biases(),
      choice<InitKind>("model.init",
                       "initial values: gpt2 (std 0.02, residual projections x (2L)^-0.5), torch "
                       "(linear U(+-1/sqrt(fan_in)), embedding N(0, 1)), neox (std sqrt(2/5C), "
                       "residual projections 2/(L sqrt C)), plain (std 0.02), lecun (linear std "
                       "1/sqrt(fan_in), embedding std 0.02, both cut off at two of these without "
                       "making up for it)",
                       {{"gpt2", InitKind::gpt2},
                        {"torch", InitKind::torch},
                        {"neox", InitKind::neox},
                        {"plain", InitKind::plain},
                        {"lecun", InitKind::lecun}},
                       FIELD(model.init)),
      priors(),
      mechanism("model.attention.scale", "logit scale t_i of a query that sees n_i keys",
                all_scales(), FIELD(model.attention.scale)),
      mechanism("model.attention.normalizer", "how the logits of a row become weights",
                all_normalizers(), FIELD(model.attention.normalizer)),
      key("model.attention.window",
          "a key is visible iff i - j < window, in layers whose prior sets no window of its own; "
          "0: all keys are",
          integer_value(0, kMaxLength), FIELD(model.attention.window)),
      key("model.attention.document_mask",
          "attention, n_i and absolute positions restart where a document begins", boolean_value(),
          FIELD(model.attention.document_mask)),
      key("model.attention.causal",
          "whether a position sees only itself and those before it; false: its whole sequence "
          "without padding, or document, with distances |i - j|",
          boolean_value(), FIELD(model.attention.causal)),
  };
}

}  // namespace bamtrain
