#include "config/mechanism.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "config/option.h"
#include "core/abbreviate.h"
#include "core/closest_match.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "mixes/registry.h"
#include "priors/registry.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A mix of heads names the prior that it mixes under this key, next to its options.
constexpr char kBase[] = "base";
constexpr char kDefaultBase[] = "kerple";

std::vector<std::string> names_of(const Mechanisms& choices) {
  std::vector<std::string> names;
  for (const MechanismInfo* m : choices) names.push_back(m->name);
  return names;
}

std::vector<std::string> options_of(const MechanismInfo& mechanism) {
  std::vector<std::string> names;
  if (find_mix(mechanism.name)) names.emplace_back(kBase);
  for (const OptionSpec& o : mechanism.options) names.push_back(o.name);
  return names;
}

bool has_option(const MechanismInfo& mechanism, const std::string& name) {
  if (name == kBase) return find_mix(mechanism.name) != nullptr;
  return std::any_of(mechanism.options.begin(), mechanism.options.end(),
                     [&name](const OptionSpec& o) { return o.name == name; });
}

/// The reason, before a remedy, why a list is not allowed at `path`.
std::string why_no_list(const std::string& path) {
  if (path.ends_with(']')) return "an entry of a list is one choice: ";
  if (path.ends_with(std::string(".") + kBase)) {
    return "for bases that differ by layer, write a list of mixes, each with its own base: ";
  }
  return "all layers share one: ";
}

const MechanismInfo& chosen(const json& value, const Mechanisms& choices, const std::string& path,
                            const Origin& origin) {
  const ValueSchema names = one_of(names_of(choices));
  if (!value.is_object()) {
    throw Error(ExitCode::config, origin.at(path), "a name, or an object with a name and options",
                describe_value(value),
                (value.is_array() ? why_no_list(path) : "") + "write {\"name\": ...}, the name " +
                    describe(names));
  }
  const std::string key = path + ".name";
  if (!value.contains("name")) {
    const std::string where = origin.at(key, path);
    // A --set of an option needs a name first; within a --set of a whole object the name is
    // missing.
    const bool of_option = where.starts_with("--set " + path + ".");
    throw missing(ExitCode::config, where, describe(names),
                  of_option ? "choose one first: --set " + path + "=NAME"
                            : "add \"name\": the one that these options belong to");
  }
  check_value(value["name"], names, origin.at(key));
  return **std::find_if(choices.begin(), choices.end(),
                        [&](const MechanismInfo* m) { return value["name"] == m->name; });
}

/// Refuses all options of `value` that `mechanism` does not have, in one message.
void refuse_foreign(const json& value, const MechanismInfo& mechanism, const Mechanisms& choices,
                    const std::string& path, const Origin& origin, const Neighbour& beside) {
  std::vector<std::string> unknown, found;
  bool owned = false;
  size_t misplaced = 0;
  for (const auto& [name, unused] : value.items()) {
    if (name == "name" || has_option(mechanism, name)) continue;
    unknown.push_back(name);
    const std::string quoted = "\"" + abbreviate(name) + "\"";
    if (beside.info != nullptr && name != kBase && has_option(*beside.info, name)) {
      ++misplaced;
      found.push_back(quoted + " (an option of " + beside.info->name + ", in " + beside.path + ")");
      continue;
    }
    std::vector<std::string> owners;
    for (const MechanismInfo* m : choices) {
      if (has_option(*m, name)) owners.push_back(m->name);
    }
    owned = owned || !owners.empty();
    found.push_back(quoted + (owners.empty() ? "" : " (an option of " + join(owners) + ")"));
  }
  if (unknown.empty()) return;
  const std::vector<std::string> known = options_of(mechanism);
  const std::string near = closest_match(unknown[0], known);
  std::string remedy = "remove it";
  if (misplaced == unknown.size()) {
    remedy = "write it in " + beside.path;
  } else if (misplaced > 0) {
    remedy = "write what belongs to " + beside.info->name + " in " + beside.path +
             ", and remove the rest";
  } else if (owned) {
    remedy = "remove what belongs to another mechanism";
    // --set cannot replace one entry of a list.
    if (!path.ends_with(']')) {
      remedy += "; --set " + path + "=" + mechanism.name + " replaces the whole object";
    }
  } else if (!near.empty()) {
    remedy = "did you mean " + near + "?";
  }
  throw Error::fault(ExitCode::config, origin.at(path + "." + unknown[0], path + ".name"),
                     mechanism.name + " has no option " + abbreviate(join(found), 400) +
                         (known.empty() ? "" : "; its options are " + join(known)),
                     remedy);
}

/// Priors, and mixes of their heads.
Mechanisms priors_and_mixes(bool of_layers) {
  Mechanisms all;
  for (const PriorInfo& p : all_priors()) {
    if (!of_layers || !p.is<EmbeddingFamily>()) all.push_back(&p);
  }
  for (const MixInfo& m : all_mixes()) all.push_back(&m);
  return all;
}

Mechanisms bases_of(const MixInfo& mix) {
  Mechanisms all;
  for (const std::string& name : mix.bases) all.push_back(find_prior(name));
  return all;
}

json base_of(const json& value) {
  return value.contains(kBase) ? value[kBase] : json{{"name", kDefaultBase}};
}

struct LayerPrior {
  PriorChoice prior;
  MixChoice mix;
};

PriorChoice read_prior(const json& value, const MechanismInfo& named, const std::string& path,
                       const Origin& origin, int64_t version) {
  const PriorInfo& info = *find_prior(named.name);
  return PriorChoice(info, read_options(value, info, path, origin, version));
}

/// Reports a known prior that the mix does not support, so that it is not taken for a typo.
void refuse_other_bases(const json& base, const MixInfo& mix, const std::string& path,
                        const Origin& origin) {
  const json name = base.is_object() ? base.value("name", json()) : json();
  if (!name.is_string() || (find_prior(name) == nullptr && find_mix(name) == nullptr)) return;
  const auto& bases = mix.bases;
  if (std::find(bases.begin(), bases.end(), name.get<std::string>()) != bases.end()) return;
  throw Error(ExitCode::config, origin.at(path + ".name"), describe(one_of(bases)),
              describe_value(name), "choose one of these: \"" + mix.name + "\" does not mix it");
}

/// The mix that `value` names, or null.
const MixInfo* mix_of(const json& value) {
  const json name = value.is_object() ? value.value("name", json()) : json();
  return name.is_string() ? find_mix(name) : nullptr;
}

/// The base of `value` if `value` is a mix.
Neighbour base_beside(const json& value, const std::string& path) {
  if (mix_of(value) == nullptr) return {};
  const json base = base_of(value);
  const json name = base.is_object() ? base.value("name", json()) : json();
  return {name.is_string() ? find_prior(name) : nullptr, path + "." + kBase};
}

LayerPrior read_layer_prior(const json& value, const std::string& path, const Origin& origin,
                            int64_t version) {
  const MechanismInfo& named =
      named_mechanism(value, priors_and_mixes(false), path, origin, base_beside(value, path));
  const MixInfo* const mix = find_mix(named.name);
  if (mix == nullptr) return {read_prior(value, named, path, origin, version), {}};
  const std::string base_path = path + "." + kBase;
  const json base = base_of(value);
  refuse_other_bases(base, *mix, base_path, origin);
  const MechanismInfo& of_base =
      named_mechanism(base, bases_of(*mix), base_path, origin, {mix, path});
  return {read_prior(base, of_base, base_path, origin, version),
          MixChoice(*mix, read_options(value, *mix, path, origin, version))};
}

ordered_json layer_prior_json(const PriorConfig& config, size_t i) {
  const MixChoice& mix = config.mix_of(static_cast<int64_t>(i));
  const ordered_json prior = mechanism_json(config.pattern[i]);
  if (!mix) return prior;
  ordered_json out = {{"name", mix.name()}, {kBase, prior}};
  out.update(mechanism_json(mix));
  return out;
}

}  // namespace

PriorConfig read_priors(const json& value, const std::string& path, const Origin& origin,
                        int64_t version) {
  PriorConfig out;
  const auto add = [&out](LayerPrior read) {
    out.pattern.push_back(std::move(read.prior));
    out.mixes.push_back(std::move(read.mix));
  };
  if (!value.is_array()) {
    add(read_layer_prior(value, path, origin, version));
    return out;
  }
  out.listed = true;
  if (value.empty()) {
    throw Error::fault(ExitCode::config, origin.at(path), "empty list",
                       "name a prior; [{\"name\": \"nope\"}] for layers without one");
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    add(read_layer_prior(value[i], entry, origin, version));
    if (out.pattern.back().info().is<EmbeddingFamily>()) {
      throw Error(ExitCode::config, origin.at(entry + ".name"), "a prior of layers in a list",
                  "\"" + out.pattern.back().name() + "\", which is added to the embedding",
                  "choose another, or give it alone, without a list");
    }
  }
  return out;
}

ordered_json priors_json(const PriorConfig& config) {
  if (config.pattern.size() == 1) return layer_prior_json(config, 0);
  ordered_json out = ordered_json::array();
  for (size_t i = 0; i < config.pattern.size(); ++i) out.push_back(layer_prior_json(config, i));
  return out;
}

ValueSchema priors_schema() {
  ValueSchema schema = mechanism_schema(priors_and_mixes(false));
  schema["oneOf"].push_back({{"type", "array"},
                             {"description", "priors of the layers, in turn"},
                             {"items", mechanism_schema(priors_and_mixes(true))},
                             {"minItems", 1}});
  return schema;
}

json with_defaults(json prior, int64_t version) {
  const json name = prior.is_object() ? prior.value("name", json()) : json();
  if (!name.is_string()) return prior;
  const auto complete = [&](const MechanismInfo& info) {
    const json defaults = mechanism_json(info, default_options(info.options, version));
    for (const auto& [option, value] : defaults.items()) prior.emplace(option, value);
  };
  if (const PriorInfo* const known = find_prior(name)) complete(*known);
  if (const MixInfo* const mix = find_mix(name)) {
    complete(*mix);
    prior[kBase] = with_defaults(base_of(prior), version);
  }
  return prior;
}

std::string with_keys(const std::string& text, const std::string& path) {
  static const std::map<std::string, std::string> of_model = {
      {"model.layers", "model.layers"},
      {"model.heads", "model.heads"},
      {"model.head_dim", "model.head_dim"},
      {"model.width", "model.width"},
      {"model.sequence_length", "data.sequence_length"},
      {"model.window", "model.attention.window"}};
  std::string out;
  size_t at = 0;
  for (size_t open; (open = text.find('{', at)) != std::string::npos;) {
    const size_t close = text.find('}', open);
    require(close != std::string::npos, "a name in braces");
    const std::string name = text.substr(open + 1, close - open - 1);
    const auto key = of_model.find(name);
    out += text.substr(at, open - at);
    require(key != of_model.end() || !name.starts_with("model."), "a name that the model has");
    out += key != of_model.end() ? key->second : path + (name.empty() ? "" : ".") + name;
    at = close + 1;
  }
  return out + text.substr(at);
}

json with_names(json value) {
  if (value.is_string()) return {{"name", value}};
  if (value.is_array()) {
    for (json& entry : value) entry = with_names(entry);
  } else if (value.is_object() && value.contains(kBase) && value[kBase].is_string()) {
    value[kBase] = with_names(value[kBase]);
  }
  return value;
}

json with_base(json prior, const std::string& member) {
  const bool inside = member.starts_with(std::string(kBase) + ".");
  if (inside && mix_of(prior) != nullptr) prior[kBase] = base_of(prior);
  return prior;
}

const MechanismInfo& named_mechanism(const json& value, const Mechanisms& choices,
                                     const std::string& path, const Origin& origin,
                                     const Neighbour& beside) {
  const MechanismInfo& info = chosen(value, choices, path, origin);
  refuse_foreign(value, info, choices, path, origin, beside);
  return info;
}

Options read_options(const json& value, const MechanismInfo& info, const std::string& path,
                     const Origin& origin, int64_t version) {
  return read_options(value, info.options, path, origin, version);
}

ordered_json mechanism_json(const MechanismInfo& info, const Options& options) {
  ordered_json out = {{"name", info.name}};
  out.update(options_json(info.options, options));
  return out;
}

ValueSchema mechanism_schema(const Mechanisms& choices) {
  ValueSchema alternatives = ValueSchema::array();
  alternatives.push_back(one_of(names_of(choices)));
  for (const MechanismInfo* m : choices) {
    ValueSchema properties = {{"name", {{"const", m->name}}}};
    if (const MixInfo* const mix = find_mix(m->name)) {
      properties[kBase] = mechanism_schema(bases_of(*mix));
      properties[kBase]["description"] = "the prior whose biases it reads";
      properties[kBase]["default"] = {{"name", kDefaultBase}};
    }
    for (const OptionSpec& o : m->options) properties[o.name] = option_schema(o);
    alternatives.push_back({{"type", "object"},
                            {"description", m->formula},
                            {"properties", properties},
                            {"required", {"name"}},
                            {"additionalProperties", false}});
  }
  return {{"oneOf", alternatives}};
}

}  // namespace bamtrain
