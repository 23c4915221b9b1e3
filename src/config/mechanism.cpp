#include "config/mechanism.h"

#include <algorithm>

#include "config/names.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "priors/registry.h"
#include "scales/scale.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// OptionSpec states "no limit" as a number of this size.
constexpr double kUnlimited = 1e300;

ValueSchema number_schema(const OptionSpec& o) {
  if (o.integer) {
    return integer_value(static_cast<int64_t>(o.minimum), static_cast<int64_t>(o.maximum));
  }
  ValueSchema s = {{"type", "number"}};
  if (o.minimum > -kUnlimited) s["minimum"] = o.minimum;
  if (o.maximum < kUnlimited) s["maximum"] = o.maximum;
  return s;
}

ordered_json option_json(const OptionSpec& o, const OptionValue& value) {
  if (const auto* number = std::get_if<double>(&value); number && o.integer) {
    return static_cast<int64_t>(*number);
  }
  return std::visit([](const auto& v) { return ordered_json(v); }, value);
}

OptionValue option_value(const OptionSpec& o, const json& value) {
  return std::visit(
      [&value](const auto& fallback) -> OptionValue {
        return value.get<std::decay_t<decltype(fallback)>>();
      },
      o.fallback);
}

ValueSchema option_schema(const OptionSpec& o) {
  ValueSchema s;
  if (std::holds_alternative<bool>(o.fallback)) {
    s = boolean_value();
  } else if (std::holds_alternative<double>(o.fallback)) {
    s = number_schema(o);
  } else if (std::holds_alternative<std::string>(o.fallback)) {
    s = o.choices.empty() ? any_text() : one_of(o.choices);
  } else {
    s = set_of(o.choices.empty() ? any_text() : one_of(o.choices));
  }
  s["description"] = o.description;
  s["default"] = option_json(o, o.fallback);
  if (o.fallback_1) {
    s["$comment"] = "with config_version 1: `" + option_json(o, *o.fallback_1).dump() + "`";
  }
  return s;
}

std::vector<std::string> names_of(const std::vector<Mechanism>& choices) {
  std::vector<std::string> names;
  for (const Mechanism& m : choices) names.push_back(m.name);
  return names;
}

std::vector<std::string> options_of(const Mechanism& mechanism) {
  std::vector<std::string> names;
  for (const OptionSpec& o : mechanism.options) names.push_back(o.name);
  return names;
}

bool has_option(const Mechanism& mechanism, const std::string& name) {
  return std::any_of(mechanism.options.begin(), mechanism.options.end(),
                     [&name](const OptionSpec& o) { return o.name == name; });
}

const Mechanism* find(const std::vector<Mechanism>& choices, const std::string& name) {
  for (const Mechanism& m : choices) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

const Mechanism& chosen(const json& value, const std::vector<Mechanism>& choices,
                        const std::string& path, const Origin& origin) {
  const ValueSchema names = one_of(names_of(choices));
  if (!value.is_object()) {
    throw Error(ExitCode::config, origin.at(path), "a name, or an object with a name and options",
                describe_value(value), "write {\"name\": ...}, the name " + describe(names));
  }
  const std::string key = path + ".name";
  if (!value.contains("name")) {
    throw Error(ExitCode::config, origin.at(key), describe(names), "no such key",
                "add the name that these options belong to");
  }
  check_value(value["name"], names, origin.at(key));
  return *find(choices, value["name"].get<std::string>());
}

/// Refuses the options of `value` that `mechanism` does not have, all in one message.
void refuse_foreign(const json& value, const Mechanism& mechanism,
                    const std::vector<Mechanism>& choices, const std::string& path,
                    const Origin& origin) {
  std::vector<std::string> unknown, found;
  bool owned = false;
  for (const auto& [name, unused] : value.items()) {
    if (name == "name" || has_option(mechanism, name)) continue;
    std::vector<std::string> owners;
    for (const Mechanism& m : choices) {
      if (has_option(m, name)) owners.push_back(m.name);
    }
    owned = owned || !owners.empty();
    unknown.push_back(name);
    found.push_back("\"" + abbreviate(name) + "\"" +
                    (owners.empty() ? "" : " (an option of " + join(owners) + ")"));
  }
  if (unknown.empty()) return;
  const std::vector<std::string> known = options_of(mechanism);
  const std::string near = nearest_name(unknown[0], known);
  std::string remedy = "remove it";
  if (owned) {
    remedy = "remove what belongs to another mechanism";
    // Of a list there is no replacing a part.
    if (!path.ends_with(']')) {
      remedy += "; --set " + path + "=" + mechanism.name + " replaces the whole object";
    }
  } else if (!near.empty()) {
    remedy = "did you mean \"" + near + "\"?";
  }
  throw Error(ExitCode::config, origin.at(path + "." + unknown[0], path + ".name"),
              known.empty() ? "no options, " + mechanism.name + " has none"
                            : "only options of " + mechanism.name + ": " + join(known),
              abbreviate(join(found), 400), remedy);
}

}  // namespace

std::vector<Mechanism> prior_choices() {
  std::vector<Mechanism> out;
  for (const PriorInfo& p : all_priors()) out.push_back({p.name, p.formula, p.options});
  return out;
}

PriorConfig read_priors(const json& value, const std::string& path, const Origin& origin,
                        int64_t version) {
  const std::vector<Mechanism> choices = prior_choices();
  if (!value.is_array()) return read_mechanism(value, choices, path, origin, version);
  if (value.empty()) {
    throw Error(ExitCode::config, origin.at(path), "at least one prior in a list", "none",
                "write [{\"name\": \"nope\"}] for layers without one");
  }
  std::vector<MechanismConfig> pattern;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    pattern.push_back(read_mechanism(value[i], choices, entry, origin, version));
    const std::string& name = pattern.back().name;
    if (find_prior(name)->family == Family::embedding) {
      throw Error(ExitCode::config, origin.at(entry + ".name"), "a prior of layers in a list",
                  "\"" + name + "\", which is added to the embedding",
                  "choose another, or give it alone, without a list");
    }
  }
  return PriorConfig(std::move(pattern));
}

ordered_json priors_json(const PriorConfig& config) {
  const std::vector<Mechanism> choices = prior_choices();
  if (config.pattern.size() == 1) return mechanism_json(config.pattern[0], choices);
  ordered_json out = ordered_json::array();
  for (const MechanismConfig& m : config.pattern) out.push_back(mechanism_json(m, choices));
  return out;
}

ValueSchema priors_schema() {
  std::vector<Mechanism> of_layers = prior_choices();
  std::erase_if(of_layers,
                [](const Mechanism& m) { return find_prior(m.name)->family == Family::embedding; });
  ValueSchema schema = mechanism_schema(prior_choices());
  schema["oneOf"].push_back({{"type", "array"},
                             {"description", "priors of the layers in turn"},
                             {"items", mechanism_schema(of_layers)},
                             {"minItems", 1}});
  return schema;
}

std::vector<Mechanism> scale_choices() {
  std::vector<Mechanism> out;
  for (const ScaleInfo& s : all_scales()) out.push_back({s.name, s.formula, s.options});
  return out;
}

std::vector<Mechanism> normalizer_choices() {
  return {{"softmax", "p_ij = exp(z_ij) / sum_k exp(z_ik)"}};
}

MechanismConfig default_mechanism(const std::string& name, const std::vector<Mechanism>& choices,
                                  int64_t version) {
  const Mechanism* m = find(choices, name);
  require(m != nullptr, "a mechanism of the registry");
  return {m->name, default_options(m->options, version)};
}

json with_names(json value) {
  if (value.is_string()) return {{"name", value}};
  if (value.is_array()) {
    for (json& entry : value) entry = entry.is_string() ? with_names(entry) : entry;
  }
  return value;
}

MechanismConfig read_mechanism(const json& value, const std::vector<Mechanism>& choices,
                               const std::string& path, const Origin& origin, int64_t version) {
  const Mechanism& mechanism = chosen(value, choices, path, origin);
  refuse_foreign(value, mechanism, choices, path, origin);
  MechanismConfig out = default_mechanism(mechanism.name, choices, version);
  for (const OptionSpec& o : mechanism.options) {
    if (!value.contains(o.name)) continue;
    check_value(value[o.name], option_schema(o), origin.at(path + "." + o.name));
    out.options.set(o.name, option_value(o, value[o.name]));
  }
  return out;
}

ordered_json mechanism_json(const MechanismConfig& config, const std::vector<Mechanism>& choices) {
  const Mechanism* m = find(choices, config.name);
  if (m == nullptr) return nullptr;
  ordered_json out = {{"name", config.name}};
  for (const OptionSpec& o : m->options) {
    const auto it = config.options.values().find(o.name);
    require(it != config.options.values().end(), "a value for every option of a mechanism");
    out[o.name] = option_json(o, it->second);
  }
  return out;
}

ValueSchema mechanism_schema(const std::vector<Mechanism>& choices) {
  ValueSchema alternatives = ValueSchema::array();
  alternatives.push_back(one_of(names_of(choices)));
  for (const Mechanism& m : choices) {
    ValueSchema properties = {{"name", {{"const", m.name}}}};
    for (const OptionSpec& o : m.options) properties[o.name] = option_schema(o);
    alternatives.push_back({{"type", "object"},
                            {"description", m.formula},
                            {"properties", properties},
                            {"required", {"name"}},
                            {"additionalProperties", false}});
  }
  return {{"oneOf", alternatives}};
}

}  // namespace bamtrain
