#include "run/init_from_model_type.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_file.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/join.h"
#include "core/json.h"

namespace bamtrain {
namespace {

using nlohmann::json;

constexpr int64_t kMaxSourceConfig = 1 << 20;
constexpr const char* kOtherFolder = "use another folder";

bool is_in_folder(const std::string& folder, const char* name) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/" + name, ignored);
}

bool has_weights(const std::string& folder) {
  return is_in_folder(folder, "model.safetensors") ||
         is_in_folder(folder, "model.safetensors.index.json");
}

std::string type_names() {
  return join(std::vector<std::string>(kSourceModelTypes.begin(), kSourceModelTypes.end()));
}

/// What a type computes that no run here does, although its tensors look like a Llama's. Types that
/// are not listed get a general reason.
std::string unsupported(const std::string& type) {
  struct Known {
    const char *prefix, *what;
  };
  static constexpr Known kKnown[] = {
      {"gemma", ", whose norms multiply by 1 + weight"},
      {"granite", ", whose embeddings, residuals, logits and attention have multipliers"},
      {"smollm3", ", of which some layers have no rope"},
      {"llama4", ", of which some layers have no rope"},
      {"cohere", ", whose logits are scaled and whose branches are parallel"},
      {"olmo", ", whose norms stand elsewhere or have no weights"},
      {"qwen3", ", whose queries and keys are normalised"},
      {"minicpm", ", whose embeddings and residuals have multipliers"},
      {"stablelm", ", whose rope turns a part of a head"},
      {"mixtral", ", a mixture of experts"},
      {"qwen2_moe", ", a mixture of experts"},
      {"gpt_neo", ", whose rope or windows are others than a Llama's"},
  };
  for (const Known& k : kKnown) {
    if (type.starts_with(k.prefix)) return k.what;
  }
  return ", whose layers may compute something else from the same tensors";
}

/// Members of Hugging Face's config.json that do not affect the logits of a single text.
bool says_nothing_of_logits(const std::string& member) {
  static const std::set<std::string> kNames = {"architectures",
                                               "model_type",
                                               "torch_dtype",
                                               "dtype",
                                               "transformers_version",
                                               "use_cache",
                                               "return_dict",
                                               "is_decoder",
                                               "id2label",
                                               "label2id",
                                               "task_specific_params",
                                               "initializer_range",
                                               "pretraining_tp",
                                               "max_position_embeddings",
                                               "n_ctx",
                                               "n_positions",
                                               "problem_type",
                                               "gradient_checkpointing",
                                               "reorder_and_upcast_attn",
                                               "max_length",
                                               "is_encoder_decoder",
                                               "classifier_dropout"};
  if (kNames.count(member) != 0 || member.starts_with("_")) return true;
  for (const char* part : {"_token_id", "dropout", "_pdrop"}) {
    if (member.find(part) != std::string::npos) return true;
  }
  return member.starts_with("output_") || member.starts_with("summary_");
}

/// Members that are read here or in init_from_settings.cpp and init_from_sizes.cpp.
bool is_read_member(const std::string& type, const std::string& member) {
  static const std::set<std::string> kGpt2 = {"vocab_size",
                                              "n_embd",
                                              "n_layer",
                                              "n_head",
                                              "n_inner",
                                              "activation_function",
                                              "layer_norm_epsilon",
                                              "scale_attn_weights",
                                              "scale_attn_by_inverse_layer_idx"};
  static const std::set<std::string> kLlama = {
      "vocab_size",          "hidden_size", "num_hidden_layers", "num_attention_heads",
      "num_key_value_heads", "head_dim",    "intermediate_size", "hidden_act",
      "rms_norm_eps",        "rope_theta",  "rope_scaling",      "rope_parameters"};
  static const std::set<std::string> kWindows = {"sliding_window", "use_sliding_window",
                                                 "max_window_layers", "layer_types"};
  if (type == "gpt2") return kGpt2.count(member) != 0;
  if (type == "mistral" && member == "sliding_window") return true;
  return kLlama.count(member) != 0 || (type == "qwen2" && kWindows.count(member) != 0);
}

class SourceMembers {
 public:
  SourceMembers(const std::string& type, const std::string& path, const json& source)
      : type_(type), path_(path), source_(source) {}

  /// `usual`: the meaning of a missing or null member.
  void require(const char* member, const json& usual, const json& ours, const std::string& why,
               const std::string& remedy = kOtherFolder) {
    known_.insert(member);
    const json given = source_.value(member, json());
    const json& found = given.is_null() ? usual : given;
    if (found == ours) return;
    throw Error(ExitCode::checkpoint, path_ + ": " + member, ours.dump() + why,
                abbreviate(found.dump()), remedy);
  }

  /// Requires the usual value, since any other means another computation.
  void require_usual(const char* member, const json& usual) {
    require(member, usual, usual, ": nothing else is supported");
  }

  /// Members that transformers' class of this type does not read.
  std::vector<std::string> unknown() const {
    std::vector<std::string> out;
    for (const auto& [member, value] : source_.items()) {
      const bool known = known_.count(member) != 0 || is_read_member(type_, member) ||
                         says_nothing_of_logits(member);
      if (!known && !value.is_null()) out.push_back(abbreviate(member, 60));
    }
    return out;
  }

 private:
  const std::string &type_, &path_;
  const json& source_;
  std::set<std::string> known_;
};

/// The part of `name` after `prefix`, a layer's number and a dot; "" if it does not match.
std::string within_layer(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return "";
  const size_t end = name.find_first_not_of("0123456789", prefix.size());
  if (end == std::string::npos || end == prefix.size() || name[end] != '.') return "";
  return name.substr(end + 1);
}

bool is_gpt2_tensor(std::string name) {
  static const std::set<std::string> kOnce = {"wte.weight", "wpe.weight", "ln_f.weight",
                                              "ln_f.bias"};
  static const std::set<std::string> kOfLayer = {"ln_1",        "ln_2",     "attn.c_attn",
                                                 "attn.c_proj", "mlp.c_fc", "mlp.c_proj"};
  if (name == "lm_head.weight") return true;
  const std::string prefix = "transformer.";
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  if (kOnce.count(name) != 0) return true;
  const std::string member = within_layer(name, "h.");
  const size_t end = member.rfind('.');
  if (end == std::string::npos || kOfLayer.count(member.substr(0, end)) == 0) return false;
  return member.substr(end) == ".weight" || member.substr(end) == ".bias";
}

/// The part of a Llama's block with this linear layer, "attention" or "mlp"; "" if there is none.
std::string linear_part(const std::string& module) {
  static const std::set<std::string> kAttention = {"self_attn.q_proj", "self_attn.k_proj",
                                                   "self_attn.v_proj", "self_attn.o_proj"};
  static const std::set<std::string> kMlp = {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"};
  if (kAttention.count(module) != 0) return "attention";
  return kMlp.count(module) != 0 ? "mlp" : "";
}

/// Refuses kinds of rope scaling that no run has.
void check_rope_types(const std::string& path, const json& source) {
  for (const char* group : {"rope_parameters", "rope_scaling"}) {
    const json object = source.value(group, json());
    if (object.is_null()) continue;
    if (!object.is_object()) {
      throw Error(ExitCode::checkpoint, path + ": " + group, "an object or null",
                  abbreviate(object.dump()), kOtherFolder);
    }
    for (const char* member : {"rope_type", "type"}) {
      const json found = object.value(member, json("default"));
      const auto is_known = [&found](const char* type) { return found == type; };
      static constexpr std::array kRead = {"default", "linear", "yarn", "llama3"};
      if (std::any_of(kRead.begin(), kRead.end(), is_known)) continue;
      throw Error(ExitCode::checkpoint, path + ": " + group + "." + member,
                  "default, linear, yarn or llama3", abbreviate(found.dump()), kOtherFolder);
    }
    static const std::set<std::string> kMembers = {"rope_type",
                                                   "type",
                                                   "factor",
                                                   "rope_theta",
                                                   "original_max_position_embeddings",
                                                   "beta_fast",
                                                   "beta_slow",
                                                   "attention_factor",
                                                   "low_freq_factor",
                                                   "high_freq_factor",
                                                   "partial_rotary_factor"};
    for (const auto& [member, value] : object.items()) {
      if (kMembers.count(member) != 0 || value.is_null()) continue;
      if (member == "truncate" && value == true) continue;  // yarn without it does the same
      throw Error(ExitCode::checkpoint, path + ": " + group + "." + abbreviate(member, 60),
                  "no such member: it is not supported", abbreviate(value.dump()), kOtherFolder);
    }
    const json part = object.value("partial_rotary_factor", json(1.0));
    if (part == json(1.0)) continue;
    throw Error(ExitCode::checkpoint, path + ": " + group + ".partial_rotary_factor",
                "1: nothing else is supported", abbreviate(part.dump()), kOtherFolder);
  }
}

}  // namespace

json source_state(const std::string& folder) {
  if (!is_in_folder(folder, "state.json")) return nullptr;
  return verified_state(folder);
}

json source_config(const std::string& folder) {
  if (!is_in_folder(folder, "config.json")) return nullptr;
  const std::string path = folder + "/config.json";
  json source =
      parse_json(InputFile(path, ExitCode::checkpoint, kDamagedRemedy).text(kMaxSourceConfig),
                 {path, ExitCode::checkpoint, kDamagedRemedy});
  if (!source.is_object()) {
    throw Error(ExitCode::checkpoint, path, "an object", source.type_name(), kDamagedRemedy);
  }
  return source;
}

std::string source_model_type(const InitFromConfig& from) {
  const json source = source_config(from.folder);
  std::string type, where = from.folder;
  if (source.is_object()) {
    where += "/config.json: model_type";
    const json found = source.value("model_type", json());
    if (found.is_string()) {
      type = found.get<std::string>();
    } else if (!found.is_null()) {
      throw Error(ExitCode::checkpoint, where, "one of " + type_names(), abbreviate(found.dump()),
                  kOtherFolder);
    } else if (source.contains("priors")) {
      type = "bamtrain";
    }
  } else if (is_in_folder(from.folder, "state.json") || !has_weights(from.folder)) {
    type = "bamtrain";  // opening a folder without weights reports what is missing
  }
  if (type.empty()) {
    if (!from.model_type.empty()) return from.model_type;
    throw Error(ExitCode::checkpoint, where,
                "a config.json with a model_type, or the state.json of a checkpoint",
                source.is_object() ? "no model_type" : "neither",
                "set init_from.model_type to \"llama\" or \"gpt2\" if it is such a model");
  }
  const auto is_named = [&type](const char* name) { return type == name; };
  if (std::none_of(kSourceModelTypes.begin(), kSourceModelTypes.end(), is_named)) {
    throw Error(ExitCode::checkpoint, where, "one of " + type_names(),
                "\"" + abbreviate(type, 60) + "\"" + unsupported(type), kOtherFolder);
  }
  if (!from.model_type.empty() && from.model_type != type) {
    throw Error(ExitCode::config, "init_from.model_type", "\"" + type + "\", as in " + from.folder,
                "\"" + from.model_type + "\"",
                "remove it: it is for folders without a config.json");
  }
  return type;
}

std::string why_no_tensor(const std::string& type, const json& source, const std::string& name) {
  const std::string none = "no such tensor in a model of type " + type;
  if (type == "bamtrain") return "";
  if (type == "gpt2") return is_gpt2_tensor(name) ? "" : none;
  static const std::set<std::string> kOnce = {"model.embed_tokens.weight", "model.norm.weight",
                                              "lm_head.weight"};
  if (kOnce.count(name) != 0) return "";
  const std::string member = within_layer(name, "model.layers.");
  const size_t end = member.rfind('.');
  if (end == std::string::npos) return none;
  const std::string module = member.substr(0, end), leaf = member.substr(end);
  const std::string part = linear_part(module);
  if (leaf == ".weight") {
    const bool norm = module == "input_layernorm" || module == "post_attention_layernorm";
    return norm || !part.empty() ? "" : none;
  }
  if (leaf != ".bias" || part.empty()) return none;
  if (type == "qwen2") return part == "attention" && module != "self_attn.o_proj" ? "" : none;
  if (type != "llama") return none;
  const std::string says = part + "_bias";
  if (source.is_null() || source.value(says, json()) == true) return "";
  return none + " whose config.json does not have " + says + " true";
}

std::vector<std::string> embedding_names(const std::string& type) {
  if (type == "gpt2") return {"transformer.wte.weight", "wte.weight"};
  if (type == "bamtrain") return {};
  return {"model.embed_tokens.weight"};
}

json source_defaults(const std::string& type) {
  if (type == "gpt2") {
    return {{"n_head", 12}, {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5}};
  }
  if (type == "llama" || type == "mistral" || type == "qwen2") {
    json out = {{"num_attention_heads", 32}, {"hidden_act", "silu"}, {"rms_norm_eps", 1e-6}};
    if (type == "mistral") out["sliding_window"] = 4096;
    return out;
  }
  return json::object();
}

void check_source_members(const std::string& type, const ModelConfig& model,
                          const std::string& path, const json& source, const Warn& warn) {
  SourceMembers members(type, path, source);
  members.require("auto_map", nullptr, nullptr, ": custom code is not run");
  members.require("quantization_config", nullptr, nullptr, ": quantized weights are not supported");
  if (const json tied = source.value("tie_word_embeddings", json()); !tied.is_null()) {
    // A run may untie a head that the folder stores next to the embedding (run/init_from.cpp).
    members.require("tie_word_embeddings", nullptr, tied == true ? tied : json(model.tied),
                    ", by model.tied", "change model.tied, or use another folder");
  }
  if (type == "gpt2") {
    members.require_usual("scale_attn_weights", true);
    members.require_usual("scale_attn_by_inverse_layer_idx", false);
    members.require_usual("add_cross_attention", false);
  } else {
    if (type == "llama") {
      members.require("attention_bias", false, model.bias.attention, ", as model.bias asks",
                      "change model.bias, or use another folder");
      members.require("mlp_bias", false, model.bias.mlp, ", as model.bias asks",
                      "change model.bias, or use another folder");
    }
    members.require_usual("partial_rotary_factor", 1.0);
    members.require_usual("rope_interleaved", false);
    check_rope_types(path, source);
  }
  const std::vector<std::string> unknown = members.unknown();
  if (unknown.empty()) return;
  warn(path + ": " + join(unknown) + ": ignored; a model of type " + type + " has no such member");
}

bool has_sliding_window(const std::string& type, const json& source, int64_t layer) {
  if (type != "qwen2") return type == "mistral";
  const json types = source.value("layer_types", json());
  if (types.is_array() && !types.empty()) {
    return types[static_cast<size_t>(layer) % types.size()] == "sliding_attention";
  }
  if (source.value("use_sliding_window", json(false)) == false) return false;
  const json first = source.value("max_window_layers", json(28));
  return first.is_number() && first.get<double>() <= static_cast<double>(layer);
}

}  // namespace bamtrain
