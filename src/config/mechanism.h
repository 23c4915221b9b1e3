#pragma once
// Mechanisms chosen by name (prior, scale, normalizer) between JSON and MechanismConfig. Names and
// options come from the registries, which declare them beside the formulas.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "model/model_config.h"

namespace bamtrain {

/// One choice: {"name": name, <options>} in JSON.
struct Mechanism {
  std::string name;
  std::string formula;
  std::vector<OptionSpec> options = {};
};

std::vector<Mechanism> prior_choices();
std::vector<Mechanism> scale_choices();
std::vector<Mechanism> normalizer_choices();

/// The choice of that name with every option at the default of a config_version.
MechanismConfig default_mechanism(const std::string& name, const std::vector<Mechanism>& choices,
                                  int64_t version);

/// A bare name, or one in a list, as the object that stands for it with every option at its
/// default.
nlohmann::json with_names(nlohmann::json value);

/// The object at key `path`, the defaults of a config_version filled in. Error (ExitCode::config)
/// for a missing or unknown name, an option that the chosen mechanism does not have (all such are
/// named, with the mechanisms they belong to), a value of wrong type or range.
MechanismConfig read_mechanism(const nlohmann::json& value, const std::vector<Mechanism>& choices,
                               const std::string& path, const Origin& origin, int64_t version);

/// Its inverse: the name, then every option in the declared order. Null for a name that is unknown.
nlohmann::ordered_json mechanism_json(const MechanismConfig& config,
                                      const std::vector<Mechanism>& choices);

/// JSON Schema: oneOf, the names and an object per name.
ValueSchema mechanism_schema(const std::vector<Mechanism>& choices);

/// The same for priors: an object, or a list of objects that serve the layers in turn. Priors of
/// family embedding belong to no layer and are refused in lists.
PriorConfig read_priors(const nlohmann::json& value, const std::string& path, const Origin& origin,
                        int64_t version);
nlohmann::ordered_json priors_json(const PriorConfig& config);
ValueSchema priors_schema();

}  // namespace bamtrain
