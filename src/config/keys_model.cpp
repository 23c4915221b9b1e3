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
        "positional prior (encoding or bias). A list gives the priors of the first layers and "
        "repeats; its length divides model.layers",
        priors_schema(), true};
  k.get = [](const RunConfig& c) { return priors_json(c.model.attention.prior); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.model.attention.prior = read_priors(v, path, origin, c.config_version);
  };
  return k;
}

/// true keeps its original meaning, from when the key was only a boolean.
Key biases() {
  const std::string path = "model.bias";
  std::vector<std::string> names;
  for (const auto& [name, unused] : kBiasPartNames) names.push_back(name);
  const ValueSchema list = set_of(one_of(names));
  Key k{path,
        "parts with biases: attention and mlp (their linear layers), norm (layernorm), head; true: "
        "all but head. With softmax, entmax or topk and an unrotated k, the bias of k shifts all "
        "logits of a row equally. It then has no effect (except with cope and dape), and drifts "
        "with rounding in its gradient",
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
                        "decoder; max_retrieval: the model of the task of that name, one attention "
                        "between MLPs with one hidden layer. There width is the attention's, mlp "
                        "the MLPs', layers and heads are 1, and keys without effect are refused",
                        kModelKindNames, FIELD(model.kind)),
      needed(trains_on_shards, key("model.vocab",
                                   "vocabulary size V, at least the tokenizer's; required with "
                                   "shards; 0: that of the tasks in data.train",
                                   integer_value(0, kMaxInt32), FIELD(model.vocab))),
      key("model.classes",
          "output classes of the head, for tasks whose answers use another alphabet than their "
          "inputs. 0: as many as the tasks in data.train have; with shards, model.vocab",
          integer_value(0, kMaxInt32), FIELD(model.classes)),
      required(
          key("model.width", "embedding width C", integer_value(1, kMaxWidth), FIELD(model.width))),
      required(
          key("model.layers", "number of blocks L", integer_value(1, 4096), FIELD(model.layers))),
      required(key("model.heads", "query heads H; divides model.width unless model.head_dim is set",
                   integer_value(1, 4096), FIELD(model.heads))),
      key("model.kv_heads",
          "key and value heads, for grouped-query attention; divides model.heads; 0: model.heads",
          integer_value(0, 4096), FIELD(model.kv_heads)),
      key("model.head_dim", "head dimension D; 0: model.width / model.heads",
          integer_value(0, kMaxWidth), FIELD(model.own_head_dim)),
      choice<MlpKind>("model.mlp.kind",
                      "swiglu and geglu (tanh) are gated, with three matrices; gelu (tanh), "
                      "gelu_erf (x Phi(x)) and relu have two",
                      kMlpNames, FIELD(model.mlp.kind)),
      required(key("model.mlp.hidden", "hidden width of the MLP", integer_value(1, kMaxWidth),
                   FIELD(model.mlp.hidden))),
      choice<NormKind>("model.norm.kind", "type of norm; model.norm_position places it",
                       {{"rmsnorm", NormKind::rmsnorm}, {"layernorm", NormKind::layernorm}},
                       FIELD(model.norm.kind)),
      key("model.norm.eps", "added to the variance, in fp32", number_within(kMinEps, kMaxEps),
          FIELD(model.norm.eps)),
      choice<NormPosition>("model.norm_position",
                           "placement of norms around f, which is attention, then the MLP; pre: x "
                           "+= f(norm(x)), with a final norm before the head; post: x = norm(x + "
                           "f(x)), without it; both: x += norm(f(norm(x))), with it",
                           kNormPositionNames, FIELD(model.norm_position)),
      key("model.embed_scale",
          "multiply token embeddings by sqrt(C), before position embeddings are added; a tied head "
          "is not scaled",
          boolean_value(), FIELD(model.embed_scale)),
      key("model.tied", "the head shares the embedding matrix", boolean_value(), FIELD(model.tied)),
      biases(),
      choice<InitKind>(
          "model.init",
          "initialization; gpt2: std 0.02, residual projections x (2L)^-0.5; torch: linear "
          "U(+-1/sqrt(fan_in)), embedding N(0, 1); neox: std sqrt(2/(5C)), residual projections "
          "2/(L "
          "sqrt C); plain: std 0.02; lecun: linear std 1/sqrt(fan_in), embedding std 0.02, both "
          "truncated at 2 std without rescaling",
          {{"gpt2", InitKind::gpt2},
           {"torch", InitKind::torch},
           {"neox", InitKind::neox},
           {"plain", InitKind::plain},
           {"lecun", InitKind::lecun}},
          FIELD(model.init)),
      priors(),
      mechanism("model.attention.scale",
                "logit scale (temperature) t_i of a query that sees n_i keys", all_scales(),
                FIELD(model.attention.scale)),
      mechanism("model.attention.normalizer",
                "softmax or an alternative: turns the logits of a row into weights",
                all_normalizers(), FIELD(model.attention.normalizer)),
      key("model.attention.window",
          "sliding window of layers whose prior has none of its own: a key is visible iff i - j < "
          "window; 0: no window",
          integer_value(0, kMaxLength), FIELD(model.attention.window)),
      key("model.attention.document_mask",
          "attention, n_i and absolute positions restart at every document", boolean_value(),
          FIELD(model.attention.document_mask)),
      key("model.attention.causal",
          "causal attention; false: bidirectional, over the sequence without padding, or the "
          "document, with distances |i - j|",
          boolean_value(), FIELD(model.attention.causal)),
  };
}

}  // namespace bamtrain
