#include "run/init_from_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "checkpoint/checkpoint_file.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "model/huggingface_config.h"
#include "model/length_options.h"
#include "model/mechanisms.h"
#include "priors/registry.h"
#include "record/run_text.h"
#include "run/init_from_model_type.h"
#include "run/init_from_sizes.h"

namespace bamtrain {
namespace {

using nlohmann::json;

constexpr const char* kMaxPositions = "max_position_embeddings";

constexpr std::array kOfTraining = {"init",  "init_std",  "train",       "share",
                                    "gamma", "gamma_std", "train_gamma", "decay"};

/// Defaults of src/export/huggingface/configuration_bamtrain.py for members missing in config.json
/// that tensors do not show, followed by those of its default prior.
json bamtrain_defaults() {
  return {{"num_attention_heads", 12},
          {"mlp", "swiglu"},
          {"norm", "rmsnorm"},
          {"norm_eps", 1e-5},
          {"max_position_embeddings", 512}};
}
json bamtrain_prior_defaults() { return {{"window", 0}, {"scale_bias", false}}; }

/// An option as configured if it is a choice, for which a folder may have the number.
json as_configured(const Options& options, const std::string& option, const json& value) {
  const auto it = options.values().find(option);
  const bool choice =
      it != options.values().end() && std::holds_alternative<std::string>(it->second);
  return choice ? json(std::get<std::string>(it->second)) : value;
}

/// Equality. Numbers may differ by the rounding of another program's text format.
bool agree(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

/// `prior`: of the folder, whose program may have had other priors.
bool has_own_window(const std::string& prior) {
  const PriorInfo* info = find_prior(prior);
  return info != nullptr && info->window != nullptr;
}

std::string type_in(const json& source, const std::string& otherwise) {
  const json type = source.value("model_type", json());
  return type.is_string() ? type.get<std::string>() : otherwise;
}

class Settings {
 public:
  Settings(const RunConfig& c, const std::string& path, const json& source, NewParts parts,
           const Warn& warn)
      : c_(c),
        m_(c.model),
        path_(path),
        source_(source),
        type_(type_in(source, c.init_from.model_type)),
        bamtrain_(type_ == "bamtrain" || (type_.empty() && source.contains("priors"))),
        defaults_(bamtrain_ ? bamtrain_defaults() : source_defaults(type_)),
        new_(parts),
        warn_(warn) {}

  void check() {
    if (bamtrain_) require_priors();
    require_same("num_attention_heads", m_.heads, "model.heads");
    require_same("n_head", m_.heads, "model.heads");
    if (!source_.value("head_dim", json()).is_null()) {
      require_same("head_dim", m_.head_dim(), "model.head_dim");
    }
    // After the heads, because tensors only show the number of key heads times their width.
    check_init_from_sizes(c_, new_, path_, source_);
    require_same("hidden_act", huggingface_activation(m_.mlp.kind), "model.mlp.kind");
    // One function with two names.
    if (source_.value("activation_function", json()) != huggingface_activation(m_.mlp.kind)) {
      require_same("activation_function", gpt2_activation(m_.mlp.kind), "model.mlp.kind");
    }
    norm();
    embedding();
    if (bamtrain_) {
      of_bamtrain();
    } else {
      if (!type_.empty()) check_source_members(type_, m_, path_, source_, warn_);
      of_llama();
    }
  }

 private:
  void require_same(const char* member, const json& ours, const char* key) const {
    const bool there = source_.contains(member);
    if (!there && !defaults_.contains(member)) return;
    const json& theirs = there ? source_[member] : defaults_[member];
    if (theirs == ours) return;
    throw Error(ExitCode::checkpoint, path_ + ": " + member, ours.dump() + ", by " + key,
                (there ? "" : "no such member, which means ") + abbreviate(theirs.dump()),
                std::string("change ") + key + ", or use another folder");
  }

  /// Warns that the folder `has` something ("theta is 1.0") and the run something else.
  void tell(const std::string& has, const std::string& key, const json& ours) {
    const std::string text = path_ + ": " + has + ", but " + key + " of this run is " + ours.dump();
    if (told_.insert(text).second) warn_(text);
  }

  /// `name`: of the member `found`, with its place.
  void tell_unless_same(const std::string& name, const json& found, const std::string& key,
                        const json& ours) {
    if (!agree(found, ours)) tell(name + " is " + abbreviate(found.dump()), key, ours);
  }

  void tell_absent(const std::string& name, const json& stands_for, const std::string& key,
                   const json& ours) {
    tell(name + " is missing, which means " + stands_for.dump(), key, ours);
  }

  /// A top-level member that may be left to the defaults.
  void tell_unless_same(const char* member, const std::string& key, const json& ours) {
    if (source_.contains(member)) return tell_unless_same(member, source_[member], key, ours);
    if (!defaults_.contains(member) || agree(defaults_[member], ours)) return;
    tell_absent(member, defaults_[member], key, ours);
  }

  void norm() {
    const bool rms = m_.norm.kind == NormKind::rmsnorm;
    require_same("norm", rms ? "rmsnorm" : "layernorm", "model.norm.kind");
    const std::vector<const char*> others =
        rms ? std::vector{"layer_norm_eps", "layer_norm_epsilon"} : std::vector{"rms_norm_eps"};
    for (const char* other : others) {
      if (!source_.contains(other) && !defaults_.contains(other)) continue;
      throw Error(
          ExitCode::checkpoint, path_ + ": " + other,
          std::string("the eps of a ") + (rms ? "rmsnorm" : "layernorm") + ", by model.norm.kind",
          std::string("the eps of a ") + (rms ? "layernorm" : "rmsnorm"),
          "change model.norm.kind, or use another folder");
    }
    for (const char* eps : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps"}) {
      tell_unless_same(eps, "model.norm.eps", m_.norm.eps);
    }
  }

  /// The position of norms is not compared here: tensors show it, see check_init_from.
  void embedding() const {
    const json scaled = source_.value("embed_scale", json(false));
    if (scaled == json(m_.embed_scale)) return;
    throw Error(ExitCode::checkpoint, path_ + ": embed_scale",
                json(m_.embed_scale).dump() + ", by model.embed_scale", abbreviate(scaled.dump()),
                "change model.embed_scale, or use another folder");
  }

  std::string prior_key(int64_t layer) const {
    return "model.attention.prior" + m_.attention.prior.place(layer);
  }
  /// The key of the prior itself, which is the base if its heads are mixed.
  std::string base_key(int64_t layer) const {
    return prior_key(layer) + (m_.attention.prior.mix_of(layer) ? ".base" : "");
  }

  bool own_window(int64_t layer) const {
    return m_.attention.prior.of(layer).info().window != nullptr;
  }

  std::string window_key(int64_t layer) const {
    return own_window(layer) ? base_key(layer) + ".window" : "model.attention.window";
  }

  // --- a folder with bamtrain's own configuration: src/export/huggingface

  void require_priors() const {
    const json priors = source_.value("priors", json());
    const bool list = priors.is_array() && !priors.empty() &&
                      std::all_of(priors.begin(), priors.end(), [](const json& p) {
                        return p.is_object() && p.contains("name") && p["name"].is_string();
                      });
    if (list) return;
    refuse("priors", "a list of objects with a name",
           source_.contains("priors") ? priors.dump() : "no such member");
  }

  void of_bamtrain() {
    for (const auto& [name, kind] : kMlpNames) {
      if (kind == m_.mlp.kind) require_same("mlp", name, "model.mlp.kind");
    }
    const json& priors = source_["priors"];
    for (int64_t l = 0; l < m_.layers; ++l) {
      const size_t i = static_cast<size_t>(l) % priors.size();
      prior("priors[" + std::to_string(i) + "].", priors[i], l);
    }
    if (!new_.scale) scale();
    if (!new_.normalizer) normalizer();
    documents();
  }

  [[noreturn]] void refuse(const char* member, const char* expected,
                           const std::string& found) const {
    throw Error(ExitCode::checkpoint, path_ + ": " + member, expected, abbreviate(found),
                kDamagedRemedy);
  }

  /// Compares the mix of heads; null in a folder: no mix.
  void mix(const std::string& place, const json& entry, int64_t layer) {
    const MixChoice& chosen = m_.attention.prior.mix_of(layer);
    const json theirs = entry.value("mix", json());
    const json ours = huggingface_prior(m_, layer, c_.data.sequence_length).value("mix", json());
    const auto name = [](const json& of) { return of.is_object() ? of.value("name", json()) : of; };
    if (name(theirs) != name(ours)) {
      return tell_unless_same(place + "mix.name", name(theirs), prior_key(layer) + ".name",
                              name(ours));
    }
    if (chosen) options(place + "mix.", theirs, ours, chosen.options, prior_key(layer) + ".");
  }

  void prior(const std::string& place, json theirs, int64_t layer) {
    if (!new_.mix) mix(place, theirs, layer);
    theirs = spelt_out(place, theirs);
    theirs.erase("mix");
    const PriorChoice& chosen = m_.attention.prior.of(layer);
    const json ours = huggingface_prior(m_, layer, c_.data.sequence_length);
    const std::string key = base_key(layer);
    if (new_.prior) {
      if (has_own_window(theirs["name"]) || own_window(layer)) return;
      return of_attention(place, theirs, ours, "window", window_key(layer));
    }
    if (theirs["name"] != ours["name"]) {
      return tell_unless_same(place + "name", theirs["name"], key + ".name", ours["name"]);
    }
    options(place, theirs, ours, chosen.options, key + ".");
    of_attention(place, theirs, ours, "window", window_key(layer));
    if (!new_.scale) {
      of_attention(place, theirs, ours, "scale_bias", "model.attention.scale.scale_bias");
    }
    ModelConfig former = m_;
    former.attention.prior = PriorConfig(without(chosen, theirs));
    absent(place, theirs, ours, huggingface_prior(former, 0, c_.data.sequence_length),
           chosen.options, former.attention.prior.of(0).options, key + ".");
  }

  /// The folder's prior with the numbers that follow from its training length.
  json spelt_out(const std::string& place, const json& prior) const {
    const json length = source_.value(kMaxPositions, json());
    const bool counts = length.is_number_integer() && length > 0 && length <= kMaxTrainedLength;
    const auto T = (counts ? length : defaults_[kMaxPositions]).get<int64_t>();
    try {
      return with_lengths({{"prior", prior}}, T)["prior"];
    } catch (const Error& e) {
      throw e.at(path_ + ": " + place + e.where().substr(std::string_view("prior.").size()));
    }
  }

  /// Compares a member of a prior's entry that is not an option of the prior.
  void of_attention(const std::string& place, const json& theirs, const json& ours,
                    const char* member, const std::string& key) {
    if (theirs.contains(member)) {
      return tell_unless_same(place + member, theirs[member], key, ours[member]);
    }
    const json stands_for = bamtrain_prior_defaults()[member];
    if (!agree(stands_for, ours[member])) {
      tell_absent(place + member, stands_for, key, ours[member]);
    }
  }

  static bool is_of_attention(const std::string& member) {
    return bamtrain_prior_defaults().contains(member);
  }

  /// Compares the `chosen` options that the folder has.
  void options(const std::string& place, const json& theirs, const json& ours,
               const Options& chosen, const std::string& key) {
    for (const auto& [name, value] : theirs.items()) {
      const bool compared =
          ours.contains(name) && of_formula(name, theirs, ours) && !is_of_attention(name);
      if (!compared || agree(value, ours[name])) continue;
      tell(place + name + " is " + abbreviate(value.dump()), key + name,
           as_configured(chosen, name, ours[name]));
    }
  }

  /// `chosen`, with each option that the folder lacks set to what it meant before it existed.
  template <class Info>
  static Choice<Info> without(Choice<Info> chosen, const json& theirs) {
    for (const OptionSpec& o : chosen.info().options) {
      if (!theirs.contains(o.name)) chosen.options.set(o.name, o.default_of(1));
    }
    return chosen;
  }

  /// Warns if an option that the folder lacks has another value than it `former`ly had.
  void absent(const std::string& place, const json& theirs, const json& ours, const json& former,
              const Options& chosen, const Options& chosen_formerly, const std::string& key) {
    for (const auto& [name, value] : former.items()) {
      const bool compared =
          !theirs.contains(name) && of_formula(name, theirs, ours) && !is_of_attention(name);
      if (!compared || agree(value, ours[name])) continue;
      tell_absent(place + name, as_configured(chosen_formerly, name, value), key + name,
                  as_configured(chosen, name, ours[name]));
    }
  }

  void scale() {
    const json ours = huggingface_scale(m_, c_.data.sequence_length);
    const json theirs = mechanism("scale", "none", ours);
    if (theirs.is_null()) return;
    const ScaleChoice& chosen = m_.attention.scale;
    options("scale.", theirs, ours, chosen.options, "model.attention.scale.");
    ModelConfig former = m_;
    former.attention.scale = without(chosen, theirs);
    absent("scale.", theirs, ours, huggingface_scale(former, c_.data.sequence_length),
           chosen.options, former.attention.scale.options, "model.attention.scale.");
  }

  void normalizer() {
    const json ours = huggingface_normalizer(m_), theirs = mechanism("normalizer", "softmax", ours);
    if (theirs.is_null()) return;
    options("normalizer.", theirs, ours, m_.attention.normalizer.options,
            "model.attention.normalizer.");
  }

  /// The folder's `member` if it has the same name as the run's; else null, after a warning.
  /// `fallback`: the name that a missing member stands for.
  json mechanism(const std::string& member, const std::string& fallback, const json& ours) {
    const std::string key = "model.attention." + member + ".name";
    const json theirs = source_.value(member, json());
    if (theirs.is_null()) {
      if (ours["name"] != fallback) tell_absent(member + ".name", fallback, key, ours["name"]);
      return nullptr;
    }
    if (!theirs.is_object() || !theirs.contains("name")) {
      refuse(member.c_str(), "an object with a name", theirs.dump());
    }
    if (theirs["name"] == ours["name"]) return theirs;
    tell_unless_same(member + ".name", theirs["name"], key, ours["name"]);
    return nullptr;
  }

  void documents() {
    const json theirs = source_.value("document_start", json());
    const bool mask = m_.attention.document_mask;
    if (theirs.is_null() == mask) {
      const std::string key = "model.attention.document_mask";
      if (!source_.contains("document_start")) {
        return tell_absent("document_start", nullptr, key, mask);
      }
      return tell("document_start is " + theirs.dump(), key, mask);
    }
    const auto ours = document_start(c_, "");
    if (mask && ours) tell_unless_same("document_start", theirs, "data.document_start", *ours);
  }

  // --- any other folder: as transformers reads a Llama's configuration

  void of_llama() {
    for (int64_t l = 0; l < m_.layers; ++l) {
      const MixChoice& mix = m_.attention.prior.mix_of(l);
      if (mix && !new_.mix) tell("it has no mix", prior_key(l) + ".name", mix.name());
      if (!new_.prior) rope(l);
      if (!new_.prior || !own_window(l)) window(l);
    }
    const std::string& scale = m_.attention.scale.name();
    if (!new_.scale && scale != "none") {
      tell("it has no logit scale", "model.attention.scale.name", scale);
    }
    const NormalizerChoice& normalizer = m_.attention.normalizer;
    if (!new_.normalizer && normalizer && normalizer.name() != "softmax") {
      tell("its normalizer is softmax", "model.attention.normalizer.name", normalizer.name());
    }
  }

  /// The members `name` at the top level and in one object: rope_parameters since transformers 5,
  /// rope_scaling before.
  std::vector<std::pair<std::string, json>> rope_members(const std::string& name) const {
    std::vector<std::pair<std::string, json>> out;
    if (source_.contains(name)) out.emplace_back(name, source_[name]);
    for (const char* group : {"rope_parameters", "rope_scaling"}) {
      const json object = source_.value(group, json());
      if (!object.is_object() || !object.contains(name)) continue;
      out.emplace_back(std::string(group) + "." + name, object[name]);
    }
    return out;
  }

  void rope(int64_t layer) {
    const PriorChoice& chosen = m_.attention.prior.of(layer);
    const std::string key = base_key(layer);
    const auto bases = rope_members("rope_theta");
    if (!chosen.info().is<RotaryFamily>()) {
      const bool rotary = !type_.empty() && type_ != "gpt2";
      if (!bases.empty() || rotary) tell("its prior is rope", key + ".name", chosen.name());
      return;
    }
    const json ours = huggingface_rope(m_, layer, c_.data.sequence_length);
    if (bases.empty()) tell("it has no rope_theta", key + ".theta", ours["rope_theta"]);
    for (const auto& [name, theta] : bases) {
      tell_unless_same(name, theta, key + ".theta", ours["rope_theta"]);
    }
    // Named "type" until transformers 4.43.
    auto types = rope_members("rope_type");
    if (types.empty()) types = rope_members("type");
    if (types.empty()) types = {{"rope_type", "default"}};
    const json& scaling = ours["rope_scaling"];
    const json type = scaling.is_null() ? json("default") : scaling["rope_type"];
    for (const auto& [name, found] : types) {
      if (found != type) {
        return tell(name + " is " + abbreviate(found.dump()), key + ".scaling",
                    chosen.options.text("scaling"));
      }
    }
    if (scaling.is_null()) return;
    for (const auto& [member, value] : scaling.items()) {
      const std::string own = member == "factor"           ? key + ".factor"
                              : member.starts_with("orig") ? key + ".original_length"
                                                           : member + " of " + key + ".scaling";
      const auto members = rope_members(member);
      for (const auto& [name, found] : members) tell_unless_same(name, found, own, value);
      if (members.empty() && member.starts_with("orig") && source_.contains(kMaxPositions)) {
        tell_unless_same(kMaxPositions, source_[kMaxPositions], own, value);
      }
    }
  }

  void window(int64_t layer) {
    const json found = source_.contains("sliding_window")
                           ? source_["sliding_window"]
                           : defaults_.value("sliding_window", json());
    const bool used = found.is_number() && has_sliding_window(type_, source_, layer);
    const int64_t ours = layer_window(m_, layer, c_.data.sequence_length);
    if (used) {
      tell_unless_same("sliding_window", found, window_key(layer), ours);
    } else if (ours != 0) {
      tell("it has no sliding_window", window_key(layer), ours);
    }
  }

  const RunConfig& c_;
  const ModelConfig& m_;
  const std::string& path_;
  const json& source_;
  const std::string type_;  // config.json's model_type, else init_from's; "": unknown
  const bool bamtrain_;     // the folder has bamtrain's own configuration
  const json defaults_;     // for members that config.json may lack
  NewParts new_;
  const Warn& warn_;
  std::set<std::string> told_;
};

}  // namespace

bool of_formula(const std::string& option, const json& theirs, const json& ours) {
  // For a learned alpha it is only the initial value.
  const bool learned =
      theirs.value("learned", json()) == true && ours.value("learned", json()) == true;
  if (option == "alpha" && learned) return false;
  return std::find(kOfTraining.begin(), kOfTraining.end(), option) == kOfTraining.end();
}

void check_init_from_settings(const RunConfig& config, NewParts parts, const Warn& warn) {
  const std::string path = config.init_from.folder + "/config.json";
  const json source = source_config(config.init_from.folder);
  std::error_code ignored;
  if (source.is_null()) {
    // A checkpoint of bamtrain has the same in its state.
    if (std::filesystem::exists(config.init_from.folder + "/state.json", ignored)) return;
    warn(path + ": no such file, so what shapes do not show (heads, activation, norms, " +
         "positions) is not compared with the run's model");
    return;
  }
  Settings(config, path, source, parts, warn).check();
}

}  // namespace bamtrain
