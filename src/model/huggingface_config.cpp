#include "model/huggingface_config.h"

#include <cmath>
#include <variant>

#include "core/error.h"
#include "model/mechanisms.h"
#include "priors/registry.h"
#include "scales/scale.h"

namespace bamtrain {
namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
const std::string& name_in(const std::vector<std::pair<std::string, Enum>>& names, Enum value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  require(false, "an enumerator with a name");
  return names.front().first;
}

Json mechanism_json(const MechanismConfig& m) {
  Json j = {{"name", m.name}};
  for (const auto& [name, value] : m.options.values()) {
    std::visit([&j, &key = name](const auto& v) { j[key] = v; }, value);
  }
  return j;
}

/// Positions that the model is meant for: T, or as many as scaling or random positions make of it.
int64_t rope_positions(const ModelConfig& c, int64_t T) {
  const MechanismConfig& rope = c.attention.prior.of(0);
  const int64_t randomized = find_prior(rope.name)->randomized_positions(rope.options, T);
  if (randomized > 0) return randomized;
  return static_cast<int64_t>(std::ceil(static_cast<double>(T) * rope.options.number("factor")));
}

Json optional(const std::optional<int64_t>& id) { return id ? Json(*id) : Json(nullptr); }

}  // namespace

const char* huggingface_activation(MlpKind kind) {
  switch (kind) {
    case MlpKind::swiglu:
      return "silu";
    case MlpKind::geglu:
    case MlpKind::gelu:
      return "gelu_pytorch_tanh";
    case MlpKind::gelu_erf:
      return "gelu";
    case MlpKind::relu:
      return "relu";
  }
  return "";
}

bool is_llama(const ModelConfig& c, int64_t T) {
  const std::vector<MechanismConfig>& priors = c.attention.prior.pattern;
  for (const MechanismConfig& p : priors) {
    if (p.name != "rope" || !(p == priors[0])) return false;
  }
  return c.attention.scale.name == "none" && layer_window(c, 0, T) == 0 &&
         c.norm.kind == NormKind::rmsnorm && c.norm_position == NormPosition::pre &&
         c.mlp.kind == MlpKind::swiglu && !c.embed_scale;
}

Json huggingface_prior(const ModelConfig& c, int64_t layer, int64_t T) {
  const MechanismConfig& chosen = c.attention.prior.of(layer);
  const PriorInfo& prior = *find_prior(chosen.name);
  Json j = mechanism_json(chosen);
  if (prior.gain) j["gain"] = prior.gain(chosen.options, prior_shape(c, T));
  if (prior.threshold_length) j["threshold_length"] = prior.threshold_length(chosen.options, T);
  if (prior.family == Family::embedding && prior.embedding == nullptr) {
    j["positions"] = prior.parameters(chosen.options, prior_shape(c, T)).at(0).shape.at(0);
  }
  j["window"] = layer_window(c, layer, T);
  j["scale_bias"] = scale_bias(c, layer);
  return j;
}

Json huggingface_scale(const ModelConfig& c, int64_t T) {
  const MechanismConfig& chosen = c.attention.scale;
  const ScaleInfo& scale = *find_scale(chosen.name);
  Json j = mechanism_json(chosen);
  j.erase("scale_bias");  // each prior's, see above
  if (scale.longest) {
    j["lengths"] = scale.longest(scale.constants(chosen.options, prior_shape(c, T)));
  }
  return j;
}

Json huggingface_rope(const ModelConfig& c, int64_t layer, int64_t T) {
  const Options& o = c.attention.prior.of(layer).options;
  const std::string& scaling = o.text("scaling");
  const double factor = o.number("factor"), D = static_cast<double>(c.head_dim());
  double theta = o.number("theta");
  if (scaling == "ntk") theta *= std::pow(factor, D / (D - 2));
  if (scaling == "none" || scaling == "ntk") {
    return {{"rope_theta", theta}, {"rope_scaling", nullptr}};
  }
  Json s = {{"rope_type", scaling}, {"factor", factor}};
  if (scaling != "linear") s["original_max_position_embeddings"] = T;
  if (scaling == "yarn") {
    s["beta_fast"] = 32.0;
    s["beta_slow"] = 1.0;
    s["attention_factor"] = 0.1 * std::log(factor) + 1;
  }
  if (scaling == "llama3") {
    s["low_freq_factor"] = 1.0;
    s["high_freq_factor"] = 4.0;
  }
  return {{"rope_theta", theta}, {"rope_scaling", s}};
}

Json huggingface_config(const ModelConfig& c, int64_t T, Dtype dtype, const SpecialTokens& tokens) {
  require(c.attention.normalizer == NormalizerKind::softmax, "a softmax");
  const bool llama = is_llama(c, T);
  Json j = {{"architectures", {llama ? "LlamaForCausalLM" : "BamtrainForCausalLM"}}};
  if (!llama) {
    j["auto_map"] = {{"AutoConfig", "configuration_bamtrain.BamtrainConfig"},
                     {"AutoModel", "modeling_bamtrain.BamtrainModel"},
                     {"AutoModelForCausalLM", "modeling_bamtrain.BamtrainForCausalLM"}};
  }
  j["model_type"] = llama ? "llama" : "bamtrain";
  j["vocab_size"] = c.vocab;
  j["hidden_size"] = c.width;
  j["num_hidden_layers"] = c.layers;
  j["num_attention_heads"] = c.heads;
  j["num_key_value_heads"] = c.kv_heads;
  j["head_dim"] = c.head_dim();
  j["intermediate_size"] = c.mlp.hidden;
  j["hidden_act"] = huggingface_activation(c.mlp.kind);
  if (llama) {
    j["rms_norm_eps"] = c.norm.eps;
    j["attention_bias"] = c.bias;
    j["mlp_bias"] = c.bias;
    j.update(huggingface_rope(c, 0, T));
    j["max_position_embeddings"] = rope_positions(c, T);
  } else {
    j["mlp"] = name_in(kMlpNames, c.mlp.kind);
    j["norm"] = c.norm.kind == NormKind::rmsnorm ? "rmsnorm" : "layernorm";
    j["norm_eps"] = c.norm.eps;
    j["norm_position"] = name_in(kNormPositionNames, c.norm_position);
    j["embed_scale"] = c.embed_scale;
    j["bias"] = c.bias;
    j["priors"] = Json::array();
    for (size_t l = 0; l < c.attention.prior.pattern.size(); ++l) {
      j["priors"].push_back(huggingface_prior(c, static_cast<int64_t>(l), T));
    }
    j["scale"] = huggingface_scale(c, T);
    j["document_start"] =
        c.attention.document_mask ? optional(tokens.document_start) : Json(nullptr);
    j["max_position_embeddings"] = T;
  }
  j["tie_word_embeddings"] = c.tied;
  j["bos_token_id"] = optional(tokens.bos);
  j["eos_token_id"] = optional(tokens.eos);
  j["torch_dtype"] = dtype == Dtype::bf16 ? "bfloat16" : "float32";
  return j;
}

}  // namespace bamtrain
