#pragma once
// Mechanisms chosen by name (prior, scale, normalizer) between JSON and Choice. Names and options
// come from the registries, which declare them beside the formulas.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "model/model_config.h"

namespace bamtrain {

/// What a key chooses from, {"name": name, <options>} in JSON each: entries of one registry.
using Mechanisms = std::vector<const MechanismInfo*>;

template <class Info>
Mechanisms mechanisms_of(const std::vector<Info>& registry) {
  Mechanisms all;
  for (const Info& info : registry) all.push_back(&info);
  return all;
}

/// What a mechanism says of itself, with keys in place of the names in braces (MechanismInfo),
/// where `path` is the mechanism's own key.
std::string with_keys(const std::string& text, const std::string& path);

/// A bare name, one in a list or one of a prior's base, as the object that stands for it with every
/// option at its default.
nlohmann::json with_names(nlohmann::json value);

/// A mix that leaves its base to the default, as an object that spells it out where `member`
/// ("base.kernel") lies in it.
nlohmann::json with_base(nlohmann::json prior, const std::string& member);

/// A mechanism whose options, which lie in `path`, may have been written beside those of another: a
/// mix's in its base, or the base's in the mix.
struct Neighbour {
  const MechanismInfo* info = nullptr;
  std::string path;
};

/// What the object at key `path` names. Error (ExitCode::config) for a missing or unknown name and
/// options that the named mechanism does not have (all such are named, with the mechanisms they
/// belong to; of those of a neighbour the place).
const MechanismInfo& named_mechanism(const nlohmann::json& value, const Mechanisms& choices,
                                     const std::string& path, const Origin& origin,
                                     const Neighbour& beside = {});
/// Its options, the defaults of a config_version filled in. Error (ExitCode::config) for a value of
/// wrong type or range.
Options read_options(const nlohmann::json& value, const MechanismInfo& info,
                     const std::string& path, const Origin& origin, int64_t version);

/// Both.
template <class Info>
Choice<Info> read_mechanism(const nlohmann::json& value, const std::vector<Info>& registry,
                            const std::string& path, const Origin& origin, int64_t version) {
  const MechanismInfo& named = named_mechanism(value, mechanisms_of(registry), path, origin);
  const Info& info = *find_mechanism(registry, named.name);
  return Choice<Info>(info, read_options(value, info, path, origin, version));
}

/// Its inverse: the name, then every option in the declared order.
nlohmann::ordered_json mechanism_json(const MechanismInfo& info, const Options& options);
/// Null where nothing is chosen.
template <class Info>
nlohmann::ordered_json mechanism_json(const Choice<Info>& choice) {
  return choice ? mechanism_json(choice.info(), choice.options) : nullptr;
}

/// JSON Schema: oneOf, the names and an object per name.
ValueSchema mechanism_schema(const Mechanisms& choices);

/// The same for priors: an object, or a list of objects that serve the layers in turn. Priors of
/// family embedding belong to no layer and are refused in lists. What mixes heads stands among them
/// by its name, with the prior that it mixes as its base: {"name": "dape", "base": {"name":
/// "kerple"}}.
PriorConfig read_priors(const nlohmann::json& value, const std::string& path, const Origin& origin,
                        int64_t version);
nlohmann::ordered_json priors_json(const PriorConfig& config);
ValueSchema priors_schema();
/// One of them, whole: with what it leaves open at the defaults of a config_version.
nlohmann::json with_defaults(nlohmann::json prior, int64_t version);

}  // namespace bamtrain
