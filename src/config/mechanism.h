#pragma once
// Converts mechanisms chosen by name (prior, scale, normalizer) between JSON and Choice. Names and
// options come from the registries, which declare them next to the formulas.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "model/model_config.h"

namespace bamtrain {

/// The choices of a key, each {"name": name, <options>} in JSON: entries of one registry.
using Mechanisms = std::vector<const MechanismInfo*>;

template <class Info>
Mechanisms mechanisms_of(const std::vector<Info>& registry) {
  Mechanisms all;
  for (const Info& info : registry) all.push_back(&info);
  return all;
}

/// A mechanism's text with keys substituted for the names in braces (MechanismInfo); `path` is the
/// mechanism's own key.
std::string with_keys(const std::string& text, const std::string& path);

/// Expands a bare name, also in a list or as a prior's base, to an object with that name. Options
/// stay at their defaults.
nlohmann::json with_names(nlohmann::json value);

/// If `prior` is a mix and `member` ("base.kernel") is inside its base, writes out a missing base
/// as an object.
nlohmann::json with_base(nlohmann::json prior, const std::string& member);

/// A mechanism whose options, which belong in `path`, may have been misplaced: a mix's in its base,
/// or the base's in the mix.
struct Neighbour {
  const MechanismInfo* info = nullptr;
  std::string path;
};

/// The mechanism that the object at key `path` names. Throws Error (ExitCode::config) for a missing
/// or unknown name and for options that it does not have. The error lists all such options with the
/// mechanisms that have them, and for options of `beside` where they belong.
const MechanismInfo& named_mechanism(const nlohmann::json& value, const Mechanisms& choices,
                                     const std::string& path, const Origin& origin,
                                     const Neighbour& beside = {});
/// Its options, with defaults of a config_version filled in. Throws Error (ExitCode::config) for a
/// value of wrong type or out of range.
Options read_options(const nlohmann::json& value, const MechanismInfo& info,
                     const std::string& path, const Origin& origin, int64_t version);

/// Both combined.
template <class Info>
Choice<Info> read_mechanism(const nlohmann::json& value, const std::vector<Info>& registry,
                            const std::string& path, const Origin& origin, int64_t version) {
  const MechanismInfo& named = named_mechanism(value, mechanisms_of(registry), path, origin);
  const Info& info = *find_mechanism(registry, named.name);
  return Choice<Info>(info, read_options(value, info, path, origin, version));
}

/// The inverse: the name, then every option in the declared order.
nlohmann::ordered_json mechanism_json(const MechanismInfo& info, const Options& options);
/// Null if nothing is chosen.
template <class Info>
nlohmann::ordered_json mechanism_json(const Choice<Info>& choice) {
  return choice ? mechanism_json(choice.info(), choice.options) : nullptr;
}

/// JSON Schema: oneOf the names, or an object per name.
ValueSchema mechanism_schema(const Mechanisms& choices);

/// The same for priors: an object, or a list of objects that are assigned to the layers in turn.
/// Priors of family embedding belong to no layer and are refused in lists. A mix of heads is chosen
/// by name like a prior, with the prior that it mixes as its base: {"name": "dape", "base":
/// {"name": "kerple"}}.
PriorConfig read_priors(const nlohmann::json& value, const std::string& path, const Origin& origin,
                        int64_t version);
nlohmann::ordered_json priors_json(const PriorConfig& config);
ValueSchema priors_schema();
/// One entry with missing options set to the defaults of a config_version.
nlohmann::json with_defaults(nlohmann::json prior, int64_t version);

}  // namespace bamtrain
