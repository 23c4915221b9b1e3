#include "run/init_from.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/input_file.h"
#include "record/run_files.h"
#include "run/init_from_model_type.h"
#include "run/init_from_optimizer.h"
#include "run/init_from_settings.h"
#include "run/init_from_state.h"
#include "run/init_from_tensors.h"

namespace bamtrain {
namespace {

using G = ParameterGroup;

constexpr const char* kHeadName = "lm_head.weight";
constexpr const char* kEmbeddingName = "model.embed_tokens.weight";

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// N of "model.layers.N...."; -1 if there is no layer.
int64_t layer_of(const std::string& name) {
  const std::string prefix = "model.layers.";
  if (!name.starts_with(prefix)) return -1;
  const size_t begin = prefix.size(), end = name.find('.', begin);
  if (end == std::string::npos || end == begin || end - begin > 9) return -1;
  if (name.find_first_not_of("0123456789", begin) != end) return -1;
  return std::stoll(name.substr(begin, end - begin));
}

/// The config key that determines a tensor's shape; `rows`: the first dimension differs.
std::string key_of_shape(const std::string& name, bool rows) {
  if (contains(name, ".prior.") || contains(name, ".mix.") || contains(name, "embed_positions"))
    return "model.attention.prior";
  if (contains(name, ".scale.")) return "model.attention.scale";
  if (contains(name, ".normalizer.")) return "model.attention.normalizer";
  if (contains(name, "embed_tokens") || contains(name, "lm_head")) {
    return !rows                       ? "model.width"
           : contains(name, "lm_head") ? "model.vocab or model.classes"
                                       : "model.vocab";
  }
  if (rows ? contains(name, "q_proj") : contains(name, "o_proj")) return "model.head_dim";
  if (rows && (contains(name, "k_proj") || contains(name, "v_proj"))) return "model.kv_heads";
  const bool up = contains(name, "gate_proj") || contains(name, "up_proj");
  if (up ? rows : !rows && contains(name, "down_proj")) return "model.mlp.hidden";
  return "model.width";
}

/// The config key that determines whether a model has a tensor.
std::string key_of_presence(const std::string& name, int64_t layers_there) {
  if (layer_of(name) >= layers_there) return "model.layers";
  if (contains(name, ".prior.") || contains(name, ".mix.") || contains(name, "embed_positions")) {
    return "model.attention.prior";
  }
  if (contains(name, ".scale.")) return "model.attention.scale";
  if (contains(name, ".normalizer.")) return "model.attention.normalizer";
  if (name == "lm_head.bias") return "model.bias";
  if (contains(name, "lm_head")) return "model.tied";
  if (contains(name, "gate_proj")) return "model.mlp.kind";
  if (contains(name, "_feedforward_layernorm")) return "model.norm_position";
  if (name.ends_with(".bias")) return contains(name, "norm") ? "model.norm.kind" : "model.bias";
  if (contains(name, "norm")) return "model.norm_position";
  return "the model's keys";
}

/// Whether `name` in init_from.new refers to `p`.
bool stands_for(const std::string& name, const Parameter& p) {
  const bool positions = p.name.starts_with("model.embed_positions.");
  const bool of_prior = p.group == G::prior || positions, of_scale = p.group == G::scale;
  const bool of_normalizer = p.group == G::normalizer;
  if (name == "prior") return of_prior;
  if (name == "mix") return p.of_mix;
  if (name == "scale") return of_scale;
  if (name == "normalizer") return of_normalizer;
  return (of_prior || of_scale || of_normalizer) && name == p.leaf();
}

/// Compares the folder's tensors with the layout.
class Fit {
 public:
  Fit(const InitFromConfig& from, const ParameterLayout& layout)
      : from_(from),
        layout_(layout),
        type_(source_model_type(from)),
        config_(source_config(from.folder)),
        source_(from.folder, type_ == "gpt2") {
    for (const auto& [name, tensor] : source_.all()) {
      source_layers_ = std::max(source_layers_, layer_of(name) + 1);
    }
    for (const Parameter& p : layout.all()) layers_ = std::max(layers_, layer_of(p.name) + 1);
  }

  const SourceTensors& source() const { return source_; }

  bool is_new(const Parameter& p) const { return new_name(p) != from_.absent.end(); }

  /// Whether the folder's model lacks this bias, which then is 0: Qwen2 has no bias on attention's
  /// output.
  bool is_zero(const Parameter& p) const {
    return type_ == "qwen2" && p.name.ends_with(".self_attn.o_proj.bias") &&
           source_.all().count(p.name) == 0;
  }

  /// Reads the folder's p.size values of `p`. REQUIRES: check() and not is_new(p).
  void read(const Parameter& p, float* values) const {
    if (is_zero(p)) {
      std::fill_n(values, p.size, 0.0F);
      return;
    }
    const SourceTensor& tensor = source_.all().at(p.name);
    tensor.read(values);
    check_values(p, values, tensor.place.file->path(), "use another folder");
  }

  /// The parts that init_from.new names, by group or by a parameter.
  NewParts new_parts() const {
    const auto has = [this](const char* group) {
      return std::find(from_.absent.begin(), from_.absent.end(), group) != from_.absent.end();
    };
    NewParts out = {has("prior"), has("scale"), has("normalizer"), has("prior") || has("mix")};
    for (const Parameter& p : layout_.all()) {
      if (!is_new(p)) continue;
      out.mix |= p.of_mix;
      out.prior |= stands_for("prior", p) && !p.of_mix;
      out.scale |= stands_for("scale", p);
      out.normalizer |= stands_for("normalizer", p);
    }
    return out;
  }

  void check() const {
    check_type();
    for (const Parameter& p : layout_.all()) check(p);
    for (const auto& [name, tensor] : source_.all()) {
      if (layout_.find(name) || is_copied_head(name, tensor)) continue;
      refuse_fault(tensor.where(), "unexpected tensor, " + found(tensor.place),
                   "change " + key_of_presence(name, layers_) + ", or use another folder");
    }
    check_untied_head();
  }

 private:
  bool is_stored(const std::string& name) const { return source_.stored().count(name) != 0; }

  /// The first of these names that is stored; "" if none is.
  std::string stored_of(const std::vector<std::string>& names) const {
    const auto it = std::find_if(names.begin(), names.end(),
                                 [this](const std::string& name) { return is_stored(name); });
    return it == names.end() ? "" : *it;
  }

  /// Checks that the folder has the tensors of its type and no others, which the type's own code
  /// would not read.
  void check_type() const {
    if (type_ == "bamtrain") return;
    const bool gpt2 = type_ == "gpt2";
    const bool named =
        config_.is_object() && config_.value("model_type", nlohmann::json()) == type_;
    const std::string correct =
        std::string("correct ") + (named ? "config.json" : "init_from.model_type");
    if (const auto names = embedding_names(type_); stored_of(names).empty()) {
      const std::string other = gpt2 ? "llama" : "gpt2";
      const std::string found = stored_of(embedding_names(other));
      const std::string where = from_.folder + ": tensor \"" + names[0] + "\"";
      if (found.empty()) refuse_missing(where);
      refuse(where, "the names of a model of type " + type_,
             "\"" + found + "\", as " + other + " names it",
             named ? correct + ", or use another folder"
                   : "set init_from.model_type to \"" + other + "\"");
    }
    for (const auto& [name, place] : source_.stored()) {
      const std::string why = why_no_tensor(type_, config_, name);
      if (why.empty()) continue;
      refuse_fault(SourceTensor{place, place.entry->shape}.where(),
                   "unexpected tensor, " + found(place) + ": " + why,
                   correct + ", take the tensor out, or use another folder");
    }
    // The type's own code would give a missing gate random values.
    const std::string gate = "model.layers.0.mlp.gate_proj.weight";
    if (gpt2 || is_stored(gate)) return;
    refuse_missing(from_.folder + ": tensor \"" + gate + "\"");
  }

  /// The first name in init_from.new that refers to `p`; end() if there is none.
  std::vector<std::string>::const_iterator new_name(const Parameter& p) const {
    return std::find_if(from_.absent.begin(), from_.absent.end(),
                        [&p](const std::string& name) { return stands_for(name, p); });
  }

  /// Whether this is a tied head, which old folders store next to the embedding. Throws Error if
  /// its values differ.
  bool is_copied_head(const std::string& name, const SourceTensor& tensor) const {
    const auto embedding = source_.all().find(kEmbeddingName);
    if (name != kHeadName || embedding == source_.all().end()) return false;
    if (tensor.shape != embedding->second.shape || !is_read(tensor)) return false;
    if (tensor.values() == embedding->second.values()) return true;
    refuse(tensor.where(), "the values of the embedding, since model.tied is true", "other values",
           "set model.tied to false, or use another folder");
  }

  /// For a run that unties what config.json ties. The folder's model computes with the embedding,
  /// whatever the head holds. Throws Error if the values differ.
  void check_untied_head() const {
    const auto head = source_.all().find(kHeadName), embedding = source_.all().find(kEmbeddingName);
    if (head == source_.all().end() || embedding == source_.all().end()) return;
    if (!layout_.find(kHeadName)) return;
    if (!config_.is_object() || config_.value("tie_word_embeddings", nlohmann::json()) != true)
      return;
    if (head->second.values() == embedding->second.values()) return;
    refuse(head->second.where(),
           "the values of the embedding, since tie_word_embeddings of config.json is true",
           "other values", "correct config.json, or use another folder");
  }

  [[noreturn]] static void refuse(const std::string& where, const std::string& expected,
                                  const std::string& found, const std::string& remedy) {
    throw Error(ExitCode::checkpoint, where, expected, found, remedy);
  }

  [[noreturn]] static void refuse_fault(const std::string& where, const std::string& fault,
                                        const std::string& remedy) {
    throw Error::fault(ExitCode::checkpoint, where, fault, remedy);
  }

  /// A tensor that every model of the folder's type has.
  [[noreturn]] void refuse_missing(const std::string& where) const {
    refuse_fault(where, "missing (a model of type " + type_ + " has it)", "use another folder");
  }

  static bool is_read(const SourceTensor& tensor) {
    const Dtype dtype = tensor.place.entry->dtype;
    return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
  }

  static std::string found(const WeightsFolder::Place& place) {
    return shape_text(place.entry->shape) + " " + name_of(place.entry->dtype);
  }

  /// The expected shape, with the parameter's name if the folder's tensor has another name.
  static std::string expected(const Parameter& p, const SourceTensor& tensor) {
    const std::string shape = shape_text(p.shape);
    return tensor.place.entry->name == p.name ? shape : shape + " for " + p.name;
  }

  void check(const Parameter& p) const {
    const auto it = source_.all().find(p.name);
    const bool is_there = it != source_.all().end();
    if (is_new(p)) {
      if (!is_there) return;
      const std::string& name = *new_name(p);
      refuse(it->second.where(), "no such tensor: init_from.new starts it from initial values",
             found(it->second.place),
             "remove \"" + name + "\" from init_from.new" +
                 (name == p.leaf() ? "" : ", or name only the parameters that the folder lacks"));
    }
    if (!is_there && is_zero(p)) return;
    if (!is_there) {
      const bool of_mechanism =
          stands_for("prior", p) || stands_for("scale", p) || stands_for("normalizer", p);
      refuse_fault(
          from_.folder + ": tensor \"" + p.name + "\"",
          "missing (shape " + shape_text(p.shape) + ")",
          of_mechanism
              ? "name it in init_from.new, to start from its initial values, or change " +
                    key_of_presence(p.name, source_layers_)
              : "change " + key_of_presence(p.name, source_layers_) + ", or use another folder");
    }
    const SourceTensor& tensor = it->second;
    if (tensor.shape != p.shape) {
      const bool rows = tensor.shape.empty() || tensor.shape[0] != p.shape[0];
      refuse(tensor.where(), expected(p, tensor), shape_text(tensor.shape),
             "change " + key_of_shape(p.name, rows) + ", or use another folder");
    }
    if (!is_read(tensor)) {
      refuse(tensor.where(), "dtype F32, BF16 or F16", name_of(tensor.place.entry->dtype),
             "convert the folder");
    }
  }

  const InitFromConfig& from_;
  const ParameterLayout& layout_;
  std::string type_;
  nlohmann::json config_;  // null: missing
  SourceTensors source_;
  int64_t source_layers_ = 0, layers_ = 0;
};

Fit checked_fit(const TrainRun& run, const ParameterLayout& layout, const Warn& warn) {
  Fit fit(run.config.init_from, layout);
  fit.check();
  check_init_from_settings(run.config, fit.new_parts(), warn);
  check_init_from_state(run, fit.new_parts(), warn);
  if (run.config.init_from.optimizer) check_init_from_optimizer(run, layout);
  return fit;
}

}  // namespace

void check_init_from(const TrainRun& run, const ParameterLayout& layout, const Warn& warn) {
  const Fit fit = checked_fit(run, layout, warn);
  std::vector<float> values;
  for (const Parameter& p : layout.all()) {
    if (fit.is_new(p)) continue;
    values.resize(static_cast<size_t>(p.size));
    fit.read(p, values.data());
  }
}

nlohmann::json read_init_from(const TrainRun& run, const ParameterLayout& layout,
                              const Tensor& master_weights, const Warn& warn) {
  const Fit fit = checked_fit(run, layout, warn);
  for (const Parameter& p : layout.all()) {
    if (!fit.is_new(p)) fit.read(p, master_weights.slice(0, p.offset, p.size).ptr<float>());
  }
  nlohmann::json files = nlohmann::json::object();
  for (const std::string& name : fit.source().files()) {
    const std::string path = run.config.init_from.folder + "/" + name;
    files[name] = InputFile(path, ExitCode::checkpoint, kDamagedRemedy).sha256();
  }
  return {{"folder", std::filesystem::canonical(run.config.init_from.folder).string()},
          {"files", files}};
}

}  // namespace bamtrain
