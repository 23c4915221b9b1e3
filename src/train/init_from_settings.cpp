#include "train/init_from_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "checkpoint/part.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"
#include "model/huggingface_config.h"
#include "model/mechanisms.h"
#include "priors/registry.h"
#include "scales/scale.h"
#include "train/run_text.h"

namespace bamtrain {
namespace {

using nlohmann::json;

constexpr int64_t kMaxConfig = 1 << 20;

/// Options that say how parameters begin, which of them are trained and which decay.
constexpr std::array kOfTraining = {"init",  "init_std",  "train",       "share",
                                    "gamma", "gamma_std", "train_gamma", "decay"};

bool of_formula(const std::string& option) {
  return std::find(kOfTraining.begin(), kOfTraining.end(), option) == kOfTraining.end();
}

/// Equal, numbers up to what a detour through another program's text may change.
bool agree(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

bool has_own_window(const std::string& prior) {
  const PriorInfo* info = find_prior(prior);
  return info != nullptr && info->window != nullptr;
}

class Settings {
 public:
  Settings(const RunConfig& c, const std::string& path, const json& source, NewParts parts,
           const Warn& warn)
      : c_(c), m_(c.model), path_(path), source_(source), new_(parts), warn_(warn) {}

  void check() {
    require_same("num_attention_heads", m_.heads, "model.heads");
    if (!source_.value("head_dim", json()).is_null()) {
      require_same("head_dim", m_.head_dim(), "model.head_dim");
    }
    require_same("hidden_act", huggingface_activation(m_.mlp.kind), "model.mlp.kind");
    norm();
    embedding();
    if (source_.contains("priors")) {
      of_bamtrain();
    } else {
      of_llama();
    }
  }

 private:
  void require_same(const char* member, const json& ours, const char* key) const {
    if (!source_.contains(member) || source_[member] == ours) return;
    throw Error(ExitCode::checkpoint, path_ + ": " + member, ours.dump() + ", as " + key + " asks",
                abbreviate(source_[member].dump()),
                std::string("change ") + key + ", or use another folder");
  }

  /// What the folder `has` ("theta is 1.0") against what the run has.
  void tell(const std::string& has, const std::string& key, const json& ours) {
    const std::string text = path_ + ": " + has + ", and " + key + " of this run " + ours.dump();
    if (told_.insert(text).second) warn_(text);
  }

  /// `name`: of the member `found`, with the place where it lies.
  void tell_unless_same(const std::string& name, const json& found, const std::string& key,
                        const json& ours) {
    if (!agree(found, ours)) tell(name + " is " + abbreviate(found.dump()), key, ours);
  }

  void norm() {
    const bool rms = m_.norm.kind == NormKind::rmsnorm;
    require_same("norm", rms ? "rmsnorm" : "layernorm", "model.norm.kind");
    const char* other = rms ? "layer_norm_eps" : "rms_norm_eps";
    if (source_.contains(other)) {
      throw Error(ExitCode::checkpoint, path_ + ": " + other,
                  std::string("the eps of a ") + (rms ? "rmsnorm" : "layernorm") +
                      ", as model.norm.kind asks",
                  std::string("that of a ") + (rms ? "layernorm" : "rmsnorm"),
                  "change model.norm.kind, or use another folder");
    }
    for (const char* eps : {"rms_norm_eps", "layer_norm_eps", "norm_eps"}) {
      if (source_.contains(eps)) {
        tell_unless_same(eps, source_[eps], "model.norm.eps", m_.norm.eps);
      }
    }
  }

  /// Tensors tell where norms stand, see check_init_from.
  void embedding() const {
    const json scaled = source_.value("embed_scale", json(false));
    if (scaled == json(m_.embed_scale)) return;
    throw Error(ExitCode::checkpoint, path_ + ": embed_scale",
                json(m_.embed_scale).dump() + ", as model.embed_scale asks",
                abbreviate(scaled.dump()), "change model.embed_scale, or use another folder");
  }

  std::string prior_key(int64_t layer) const {
    const size_t n = m_.attention.prior.pattern.size();
    const std::string key = "model.attention.prior";
    return n > 1 ? key + "[" + std::to_string(static_cast<size_t>(layer) % n) + "]" : key;
  }

  std::string window_key(int64_t layer) const {
    return has_own_window(m_.attention.prior.of(layer).name) ? prior_key(layer) + ".window"
                                                             : "model.attention.window";
  }

  // --- a folder with bamtrain's own configuration: src/export/huggingface

  void of_bamtrain() {
    const json& priors = source_["priors"];
    const bool list = priors.is_array() && !priors.empty() &&
                      std::all_of(priors.begin(), priors.end(), [](const json& p) {
                        return p.is_object() && p.contains("name") && p["name"].is_string();
                      });
    if (!list) refuse("priors", "a list of objects with a name", priors);
    for (int64_t l = 0; l < m_.layers; ++l) {
      const size_t i = static_cast<size_t>(l) % priors.size();
      prior("priors[" + std::to_string(i) + "].", priors[i], l);
    }
    scale();
    documents();
  }

  [[noreturn]] void refuse(const char* member, const char* expected, const json& found) const {
    throw Error(ExitCode::checkpoint, path_ + ": " + member, expected, abbreviate(found.dump()),
                kDamagedRemedy);
  }

  void prior(const std::string& place, const json& theirs, int64_t layer) {
    const json ours = huggingface_prior(m_, layer, c_.data.sequence_length);
    const std::string key = prior_key(layer);
    if (new_.prior) {
      if (has_own_window(theirs["name"]) || has_own_window(ours["name"])) return;
      return option(place, theirs, ours, "window", window_key(layer));
    }
    if (theirs["name"] != ours["name"]) {
      return tell_unless_same(place + "name", theirs["name"], key + ".name", ours["name"]);
    }
    for (const auto& [name, value] : theirs.items()) {
      if (name == "scale_bias" && new_.scale) continue;
      option(place, theirs, ours, name,
             name == "window"       ? window_key(layer)
             : name == "scale_bias" ? "model.attention.scale.scale_bias"
                                    : key + "." + name);
    }
    const MechanismConfig& chosen = m_.attention.prior.of(layer);
    ModelConfig former = m_;
    former.attention.prior = without(chosen, find_prior(chosen.name)->options, theirs);
    absent(place, theirs, ours, huggingface_prior(former, 0, c_.data.sequence_length), key + ".");
    const json scaling = ours.value("scaling", json("none"));
    if ((scaling == "yarn" || scaling == "llama3") && source_.contains("max_position_embeddings")) {
      tell_unless_same("max_position_embeddings", source_["max_position_embeddings"],
                       "data.sequence_length", c_.data.sequence_length);
    }
  }

  void option(const std::string& place, const json& theirs, const json& ours,
              const std::string& name, const std::string& key) {
    const bool compared = theirs.contains(name) && ours.contains(name) && of_formula(name);
    if (compared) tell_unless_same(place + name, theirs[name], key, ours[name]);
  }

  /// `chosen` with what each option that the folder lacks meant before there was such an option.
  static MechanismConfig without(MechanismConfig chosen, const std::vector<OptionSpec>& options,
                                 const json& theirs) {
    for (const OptionSpec& o : options) {
      if (!theirs.contains(o.name)) chosen.options.set(o.name, o.default_of(1));
    }
    return chosen;
  }

  /// Tells where an option that the folder lacks has another value than it `former`ly stood for.
  void absent(const std::string& place, const json& theirs, const json& ours, const json& former,
              const std::string& key) {
    for (const auto& [name, value] : former.items()) {
      const bool compared = !theirs.contains(name) && of_formula(name) && name != "window" &&
                            name != "scale_bias" && !agree(value, ours[name]);
      if (compared) {
        tell(place + name + " is not there, which stands for " + value.dump(), key + name,
             ours[name]);
      }
    }
  }

  void scale() {
    if (new_.scale || !source_.contains("scale")) return;
    const json& theirs = source_["scale"];
    if (!theirs.is_object() || !theirs.contains("name")) {
      refuse("scale", "an object with a name", theirs);
    }
    const json ours = huggingface_scale(m_, c_.data.sequence_length);
    const std::string key = "model.attention.scale.";
    if (theirs["name"] != ours["name"]) {
      return tell_unless_same("scale.name", theirs["name"], key + "name", ours["name"]);
    }
    for (const auto& [name, value] : theirs.items()) {
      option("scale.", theirs, ours, name, key + name);
    }
    const MechanismConfig& chosen = m_.attention.scale;
    ModelConfig former = m_;
    former.attention.scale = without(chosen, find_scale(chosen.name)->options, theirs);
    absent("scale.", theirs, ours, huggingface_scale(former, c_.data.sequence_length), key);
  }

  void documents() {
    if (!source_.contains("document_start")) return;
    const json& theirs = source_["document_start"];
    const bool mask = m_.attention.document_mask;
    if (theirs.is_null() == mask) {
      return tell("document_start is " + theirs.dump(), "model.attention.document_mask", mask);
    }
    const auto ours = document_start(c_, "");
    if (mask && ours) tell_unless_same("document_start", theirs, "data.document_start", *ours);
  }

  // --- any other folder: as transformers reads a Llama's configuration

  void of_llama() {
    const json type = source_.value("model_type", json());
    if (type.is_string() && type.get<std::string>().starts_with("gemma")) {
      throw Error(ExitCode::checkpoint, path_ + ": model_type",
                  "a model whose norms multiply by their weights",
                  abbreviate(type.dump()) + ", whose norms multiply by 1 + weight",
                  "use another folder");
    }
    for (int64_t l = 0; l < m_.layers; ++l) {
      if (!new_.prior) rope(l);
      if (!new_.prior || !has_own_window(m_.attention.prior.of(l).name)) window(l);
    }
    const std::string& scale = m_.attention.scale.name;
    if (!new_.scale && scale != "none") {
      tell("it has no logit scale", "model.attention.scale.name", scale);
    }
  }

  /// The members of `name` at the top, and of one object: since transformers 5 rope_parameters,
  /// before it rope_scaling.
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
    const MechanismConfig& chosen = m_.attention.prior.of(layer);
    const std::string key = prior_key(layer);
    const auto bases = rope_members("rope_theta");
    if (find_prior(chosen.name)->family != Family::rotary) {
      const bool llama = source_.value("model_type", json()) == "llama";
      if (!bases.empty() || llama) tell("its prior is rope", key + ".name", chosen.name);
      return;
    }
    const json ours = huggingface_rope(m_, layer, c_.data.sequence_length);
    if (bases.empty()) tell("no rope_theta is there", key + ".theta", ours["rope_theta"]);
    for (const auto& [name, theta] : bases) {
      tell_unless_same(name, theta, key + ".theta", ours["rope_theta"]);
    }
    // "type" until transformers 4.43.
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
                              : member.starts_with("orig") ? "data.sequence_length"
                                                           : member + " of " + key + ".scaling";
      for (const auto& [name, found] : rope_members(member)) {
        tell_unless_same(name, found, own, value);
      }
    }
  }

  void window(int64_t layer) {
    const json found = source_.value("sliding_window", json());
    const bool used = found.is_number() && source_.value("use_sliding_window", json(true)) != false;
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
  NewParts new_;
  const Warn& warn_;
  std::set<std::string> told_;
};

}  // namespace

void check_init_from_settings(const RunConfig& config, NewParts parts, const Warn& warn) {
  const std::string path = config.init_from.folder + "/config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const json source =
      parse_json(InputFile(path, ExitCode::checkpoint, kDamagedRemedy).text(kMaxConfig),
                 {path, ExitCode::checkpoint, kDamagedRemedy});
  if (!source.is_object()) {
    throw Error(ExitCode::checkpoint, path, "an object", source.type_name(), kDamagedRemedy);
  }
  Settings(config, path, source, parts, warn).check();
}

}  // namespace bamtrain
