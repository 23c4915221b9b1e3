#include "model/huggingface_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "core/error.h"
#include "model/mechanisms.h"
#include "priors/rope.h"

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

template <class Info>
Json mechanism_json(const Choice<Info>& chosen) {
  Json j = {{"name", chosen.name()}};
  for (const auto& [name, value] : chosen.options.values()) {
    std::visit([&j, &key = name](const auto& v) { j[key] = v; }, value);
  }
  for (const OptionSpec& o : chosen.info().options) {
    if (!j.contains(o.name)) continue;
    if (!o.word.empty() && j[o.name] == 0) {
      j[o.name] = o.word;
    } else if (o.integer && j[o.name].is_number()) {
      j[o.name] = j[o.name].template get<int64_t>();
    }
  }
  return j;
}

/// `j` with the shapes of its parameters by name. Leaves out a table that is added to the
/// embedding, which attention does not have.
template <class Info>
Json with_parameters(Json j, const Choice<Info>& chosen, const ModelShape& shape) {
  if constexpr (std::is_same_v<Info, PriorInfo>) {
    if (chosen.info().template as<EmbeddingFamily>()) return j;
  }
  for (const MechanismParameter& p : chosen.parameters(shape)) j["parameters"][p.name] = p.shape;
  return j;
}

bool has_yarn(const ModelConfig& c) {
  return c.attention.prior.of(0).options.text("scaling") == "yarn";
}

/// The original length times yarn's factor. transformers 4 computes with their quotient instead of
/// the factor. 0: no whole number has that quotient.
int64_t yarn_positions(const ModelConfig& c, int64_t T) {
  const Options& options = c.attention.prior.of(0).options;
  const double original = rope_original_length(options, T), factor = options.number("factor");
  const double positions = std::round(original * factor);
  return positions / original == factor ? static_cast<int64_t>(positions) : 0;
}

/// Number of positions that the model is meant for: T, or more with scaling or random positions;
/// yarn_positions with yarn.
int64_t rope_positions(const ModelConfig& c, int64_t T) {
  if (has_yarn(c)) return yarn_positions(c, T);
  const PriorChoice& rope = c.attention.prior.of(0);
  const int64_t randomized = rope.info().randomization(rope.options, T).range;
  if (randomized > 0) return randomized;
  const double original = rope_original_length(rope.options, T);
  const double scaled =
      (original > 0 ? original : static_cast<double>(T)) * rope.options.number("factor");
  return std::max(T, static_cast<int64_t>(std::ceil(scaled)));
}

bool is_softmax(const ModelConfig& c) {
  const NormalizerChoice& n = c.attention.normalizer;
  return !n || n.info().kind == NormalizerKind::softmax;
}

/// Whether every layer has the same prior and no mix, and attention has no other feature of ours.
bool is_plain(const ModelConfig& c, const std::string& prior, int64_t T) {
  const std::vector<PriorChoice>& priors = c.attention.prior.pattern;
  for (const PriorChoice& p : priors) {
    if (p.name() != prior || !(p == priors[0])) return false;
  }
  for (const MixChoice& mix : c.attention.prior.mixes) {
    if (mix) return false;
  }
  return c.attention.scale.name() == "none" && is_softmax(c) && layer_window(c, 0, T) == 0 &&
         c.norm_position == NormPosition::pre && !c.embed_scale;
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

const char* gpt2_activation(MlpKind kind) {
  return kind == MlpKind::gelu ? "gelu_new" : huggingface_activation(kind);
}

bool is_llama(const ModelConfig& c, int64_t T) {
  return is_plain(c, "rope", T) && c.norm.kind == NormKind::rmsnorm &&
         c.mlp.kind == MlpKind::swiglu && !c.bias.head &&
         (!has_yarn(c) || yarn_positions(c, T) > 0);
}

bool is_gpt2(const ModelConfig& c, int64_t T) {
  return is_plain(c, "learned", T) && c.norm.kind == NormKind::layernorm &&
         c.bias == BiasParts(true) && !is_gated(c.mlp.kind) && c.kv_heads == c.heads &&
         c.heads * c.head_dim() == c.width;
}

Json huggingface_prior(const ModelConfig& c, int64_t layer, int64_t T) {
  const PriorChoice& chosen = c.attention.prior.of(layer);
  const PriorInfo& prior = chosen.info();
  const ModelShape shape = c.shape(T);
  Json j = mechanism_json(chosen);
  for (const OptionSpec& o : prior.options) {
    if (o.of_length == nullptr || chosen.options.number(o.name) != 0) continue;
    j[o.name] = static_cast<int64_t>(o.of_length(chosen.options, T, c.attention.window));
  }
  if (const auto* const table = prior.as<TableFamily>(); table && table->gain) {
    j["gain"] = table->gain(chosen.options, shape);
  }
  if (const auto* const embedding = prior.as<EmbeddingFamily>(); embedding && !embedding->value) {
    j["positions"] = chosen.parameters(shape).at(0).shape.at(0);
  }
  if (const MixChoice& mix = c.attention.prior.mix_of(layer)) j["mix"] = mechanism_json(mix);
  j["window"] = layer_window(c, layer, T);
  j["scale_bias"] = scale_bias(c, layer);
  return j;
}

Json huggingface_scale(const ModelConfig& c, int64_t T) {
  const ScaleChoice& chosen = c.attention.scale;
  const ScaleInfo& scale = chosen.info();
  Json j = mechanism_json(chosen);
  j.erase("scale_bias");  // belongs to each prior, see above
  if (const auto* const by_length = scale.as<LengthKind>(); by_length && by_length->longest) {
    j["lengths"] = by_length->longest(scale.constants_of(chosen.options, c.shape(T)));
  }
  return j;
}

Json huggingface_normalizer(const ModelConfig& c) {
  if (!c.attention.normalizer) return {{"name", "softmax"}};
  return mechanism_json(c.attention.normalizer);
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
  if (scaling != "linear") {
    s["original_max_position_embeddings"] = static_cast<int64_t>(rope_original_length(o, T));
  }
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

namespace {

Json gpt2_config(const ModelConfig& c, int64_t T) {
  Json j = {{"architectures", {"GPT2LMHeadModel"}},
            {"model_type", "gpt2"},
            {"vocab_size", c.vocab},
            {"n_positions", huggingface_prior(c, 0, T)["positions"]},
            {"n_embd", c.width},
            {"n_layer", c.layers},
            {"n_head", c.heads},
            {"n_inner", c.mlp.hidden},
            {"activation_function", gpt2_activation(c.mlp.kind)},
            {"layer_norm_epsilon", c.norm.eps}};
  for (const char* dropout : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) j[dropout] = 0.0;
  return j;
}

/// The config of a Llama or of BamtrainConfig.
Json other_config(const ModelConfig& c, int64_t T, const SpecialTokens& tokens) {
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
    j["attention_bias"] = c.bias.attention;
    j["mlp_bias"] = c.bias.mlp;
    j.update(huggingface_rope(c, 0, T));
    j["max_position_embeddings"] = rope_positions(c, T);
  } else {
    j["mlp"] = name_in(kMlpNames, c.mlp.kind);
    j["norm"] = c.norm.kind == NormKind::rmsnorm ? "rmsnorm" : "layernorm";
    j["norm_eps"] = c.norm.eps;
    j["norm_position"] = name_in(kNormPositionNames, c.norm_position);
    j["embed_scale"] = c.embed_scale;
    j["bias"] = Json::array();
    for (const auto& [name, part] : kBiasPartNames) {
      if (c.bias.*part) j["bias"].push_back(name);
    }
    const ModelShape shape = c.shape(T);
    j["priors"] = Json::array();
    for (size_t l = 0; l < c.attention.prior.pattern.size(); ++l) {
      j["priors"].push_back(with_parameters(huggingface_prior(c, static_cast<int64_t>(l), T),
                                            c.attention.prior.pattern[l], shape));
      for (const MechanismParameter& p :
           c.attention.prior.mix_parameters(static_cast<int64_t>(l), shape)) {
        j["priors"].back()["mix"]["parameters"][p.name] = p.shape;
      }
    }
    j["scale"] = with_parameters(huggingface_scale(c, T), c.attention.scale, shape);
    j["normalizer"] = huggingface_normalizer(c);
    if (c.attention.normalizer) {
      j["normalizer"] = with_parameters(j["normalizer"], c.attention.normalizer, shape);
    }
    j["document_start"] =
        c.attention.document_mask ? optional(tokens.document_start) : Json(nullptr);
    j["max_position_embeddings"] = T;
  }
  return j;
}

}  // namespace

Json huggingface_config(const ModelConfig& c, int64_t T, Dtype dtype, const SpecialTokens& tokens) {
  Json j = is_gpt2(c, T) ? gpt2_config(c, T) : other_config(c, T, tokens);
  j["tie_word_embeddings"] = c.tied;
  j["bos_token_id"] = optional(tokens.bos);
  j["eos_token_id"] = optional(tokens.eos);
  j["torch_dtype"] = dtype == Dtype::bf16 ? "bfloat16" : "float32";
  return j;
}

}  // namespace bamtrain
