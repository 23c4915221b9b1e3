#include <algorithm>

#include "config/config_checks.h"
#include "core/abbreviate.h"
#include "core/closest_match.h"
#include "core/join.h"

namespace bamtrain {

namespace {

class ParameterNames : ConfigChecks {
 public:
  using ConfigChecks::ConfigChecks;

  std::vector<std::string> trained_names() const { return mechanism_names(Named::trained); }

  void check() const {
    multipliers();
    init_from();
  }

 private:
  /// Which parameters of mechanisms a key can name. For the optimizer, a group exists only if it
  /// has parameters, and what is added to the embedding belongs to the embedding.
  enum class Named { all, by_optimizer, trained };

  /// The names of parameters of prior, scale and normalizer, and of their groups. A mix is a group
  /// within the prior's.
  std::vector<std::string> mechanism_names(Named which) const {
    MechanismParameters of_prior, of_mix, of_scale = c_.model.attention.scale.parameters(shape());
    MechanismParameters of_normalizer = c_.model.attention.normalizer.parameters(shape());
    for (size_t i = 0; i < priors().size(); ++i) {
      if (which != Named::all && priors()[i].info().is<EmbeddingFamily>()) continue;
      for (const MechanismParameter& p : priors()[i].parameters(shape())) of_prior.push_back(p);
      for (const MechanismParameter& p :
           c_.model.attention.prior.mix_parameters(static_cast<int64_t>(i), shape())) {
        of_mix.push_back(p);
      }
    }
    of_prior.insert(of_prior.end(), of_mix.begin(), of_mix.end());
    std::vector<std::string> known;
    const auto add = [&](const std::string& group, MechanismParameters& list) {
      if (which == Named::trained) {
        std::erase_if(list, [](const MechanismParameter& p) { return !p.trained; });
      }
      if (which == Named::all || !list.empty()) known.push_back(group);
    };
    add("prior", of_prior);
    add("mix", of_mix);
    add("scale", of_scale);
    add("normalizer", of_normalizer);
    for (const auto* list : {&of_prior, &of_scale, &of_normalizer}) {
      for (const MechanismParameter& p : *list) {
        if (!contains(known, p.name)) known.push_back(p.name);
      }
    }
    return known;
  }

  static std::string one_of_names(const std::vector<std::string>& known) {
    return known.empty() ? "no names: no prior, scale or normalizer has trained parameters"
                         : "one of " + join(known);
  }

  void require_known(const std::string& key, const std::string& name,
                     const std::vector<std::string>& known) const {
    if (contains(known, name)) return;
    refuse(key, one_of_names(known), "an unknown group or parameter, " + abbreviate(name),
           did_you_mean(name, known, "remove it"));
  }

  /// Not for an evaluation: it has no learning rates, and its prior may differ from the training's.
  void multipliers() const {
    if (use_ == ConfigUse::evaluation) return;
    const std::vector<std::string> known = mechanism_names(Named::by_optimizer);
    const std::vector<std::string> trained = trained_names();
    for (const auto& [name, unused] : c_.optimizer.lr_multipliers) {
      if (contains(trained, name)) continue;
      const std::string key = "optimizer.lr_multipliers." + abbreviate(name);
      if (contains(known, name)) {
        refuse(key,
               "a group or parameter that is trained" +
                   (trained.empty() ? "" : ": one of " + join(trained)),
               name + ", which is not trained", "remove it, or train it by the mechanism's option");
      }
      if (name == "prior" || name == "mix" || name == "scale" || name == "normalizer") {
        refuse(key, one_of_names(trained),
               name + ", but this model's " + name + " has no trained parameters", "remove it");
      }
      require_known(key, name, trained);
    }
  }

  void init_from() const {
    const InitFromConfig& from = c_.init_from;
    if (from.folder.empty() && !from.absent.empty()) {
      refuse("init_from.new", "no names without init_from.folder", join(from.absent),
             "set init_from.folder, or remove them: all parameters are new without it");
    }
    if (from.folder.empty() && !from.model_type.empty()) {
      refuse("init_from.model_type", "\"\" without init_from.folder", "\"" + from.model_type + "\"",
             "set init_from.folder, or remove it");
    }
    if (from.optimizer && (from.folder.empty() || !from.absent.empty())) {
      refuse("init_from.optimizer",
             from.folder.empty()
                 ? "false without init_from.folder"
                 : "false with init_from.new, whose parameters have no optimizer state",
             "true",
             "set it to false, or " + std::string(from.folder.empty() ? "name a checkpoint there"
                                                                      : "remove these names"));
    }
    if (use_ == ConfigUse::evaluation) return;  // its prior may differ from the training's
    for (const std::string& name : from.absent) {
      require_known("init_from.new", name, mechanism_names(Named::all));
    }
  }
};

}  // namespace

void check_parameter_names(const RunConfig& config, const Origin& origin, ConfigUse use) {
  ParameterNames(config, origin, use).check();
}

std::vector<std::string> multiplier_names(const RunConfig& config) {
  const Origin nowhere;
  return ParameterNames(config, nowhere, ConfigUse::training).trained_names();
}

}  // namespace bamtrain
