#include "config/reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "config/changes.h"
#include "config/evaluations.h"
#include "config/keys.h"
#include "config/overrides.h"
#include "config/renamed_keys.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Calls apply(key, value) for each mechanism in the document.
template <class Apply>
void for_mechanisms(json& document, Apply&& apply) {
  for (const Key& key : all_keys()) {
    if (!key.names_mechanism) continue;
    std::string pointer = "/" + key.path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const json::json_pointer at(pointer);
    if (document.contains(at)) apply(key.path, document[at]);
  }
}

/// Expands mechanisms given by name alone to objects, so that the next --set can set their options.
void spell_out_names(json& document) {
  for_mechanisms(document, [](const std::string&, json& value) { value = with_names(value); });
}

/// Writes out the default base of a mix as an object, so that a --set of `path` can set its
/// options.
void spell_out_base(json& document, const std::string& path) {
  for_mechanisms(document, [&path](const std::string& key, json& value) {
    if (path.starts_with(key + ".")) value = with_base(value, path.substr(key.size() + 1));
  });
}

/// Refuses a --set of an object that would silently discard an earlier --set inside it.
void check_order(const Origin& origin, const Override& change) {
  for (const auto& earlier : origin.overrides) {
    if (earlier.path == change.path || !lies_in(earlier.path, change.path)) continue;
    throw Error::fault(ExitCode::usage, "--set " + change.text,
                       "replaces all of \"" + change.path + "\", and the earlier --set " +
                           earlier.text + " with it",
                       "give them in the other order");
  }
}

void check_version(const json& document, const Origin& origin) {
  const json* found = find_value(document, "config_version");
  if (found == nullptr || !is_whole(*found)) return;  // the checks of the key table report more
  if (*found > kConfigVersion) {
    throw Error::fault(ExitCode::config, origin.at("config_version"),
                       "version " + found->dump() + " is newer than " +
                           std::to_string(kConfigVersion) + ", the newest that this program reads",
                       "use a newer bamtrain");
  }
}

void check_names(const json& object, const std::string& group, const Origin& origin) {
  if (!object.is_object()) {
    throw Error(ExitCode::config, group.empty() ? origin.file : origin.at(group),
                "an object with the keys " + join(members(group)), describe_value(object),
                "write {\"" + members(group)[0] + "\": ...}");
  }
  for (const auto& [name, value] : object.items()) {
    const std::string path = group.empty() ? name : group + "." + name;
    // A name with a dot would look like a path: {"model.width": 3} is not {"model": {...}}.
    const bool plain = name.find('.') == std::string::npos;
    if (plain && is_group(path)) {
      check_names(value, path, origin);
    } else if (!plain || find_key(path) == nullptr) {
      const std::string remedy = path == "base" ? "name a base in the configuration's file"
                                 : plain        ? unknown_key_remedy(path)
                                                : "write one object for each name before a dot";
      throw Error::fault(ExitCode::config, origin.at(path),
                         plain ? "unknown key" : "unknown key, with a dot in its name", remedy);
    }
  }
}

void read_keys(const json& document, const Origin& origin, RunConfig& config) {
  for (const Key& key : all_keys()) {
    const json* value = find_value(document, key.path);
    if (value != nullptr) {
      key.set(config, *value, origin);
    } else if (key.path == "config_version") {
      throw missing(ExitCode::config, origin.at(key.path), "",
                    "add \"config_version\": " + std::to_string(kConfigVersion));
    } else if (key.required || (key.needed && key.needed(document))) {
      throw missing(ExitCode::config, origin.at(key.path),
                    describe(key.schema) + ": " + key.description,
                    "add it, or give --set " + key.path + "=...");
    }
  }
}

/// Derives values that the configuration leaves open from others.
void derive(RunConfig& c) {
  if (c.model.kv_heads == 0) c.model.kv_heads = c.model.heads;
  if (!c.data.train.has_shards()) {
    const bool any_length = c.data.sequence_length == 0, any_vocab = c.model.vocab == 0;
    int64_t inputs = 0, classes = 0;
    for (const DataSource& s : c.data.train.list) {
      const TaskInfo& info = *s.task->info;
      if (info.of_file) continue;
      if (any_length) {
        c.data.sequence_length =
            std::max(c.data.sequence_length, info.most_inputs(s.task->lengths.longest));
      }
      inputs = std::max(inputs, info.inputs);
      classes = std::max(classes, info.classes);
    }
    if (any_vocab) c.model.vocab = inputs;
    // If there are as many classes as ids, a class is an id.
    if (c.model.classes == 0 && inputs != classes) c.model.classes = classes;
    if (c.model.classes == c.model.vocab) c.model.classes = 0;
  }
  const int64_t T = c.data.sequence_length;
  if (c.train.tokens_per_step == 0) c.train.tokens_per_step = c.train.sequences_per_step * T;
  const int64_t sequences = T > 0 ? c.train.tokens_per_step / T : 0;
  const int64_t micro_batches = sequences / c.train.micro_batch;
  if (c.train.lanes == 0 && micro_batches > 0) {
    c.train.lanes = default_accumulation_groups(micro_batches);
  }
  c.schedule.reaches_minimum = c.config_version > 1;
  derive_evaluations(c.data.train.list, &c.eval.tasks);
}

}  // namespace

RunConfig read_run_config(const ConfigDocument& given, const std::vector<std::string>& overrides,
                          ConfigUse use, int64_t version) {
  json document = given.root;
  Origin origin{given.file, {}, given.files};
  spell_out_names(document);
  for (const std::string& o : overrides) {
    Override change = parse_override(o);
    spell_out_base(document, change.path);
    change = meant_override(std::move(change), document);
    check_order(origin, change);
    origin.overrides.push_back({change.path, change.text, apply_override(document, change)});
    spell_out_names(document);
  }
  // A program has written a stored configuration, with its version.
  const bool names_version = document.contains("config_version") || use != ConfigUse::training;
  if (!names_version) document["config_version"] = version;
  check_version(document, origin);
  accept_earlier_names(document, origin);
  check_names(document, "", origin);
  RunConfig config = default_run_config(config_version_of(document));
  config.names_version = names_version;
  read_keys(document, origin, config);
  derive(config);
  validate(config, origin, use);
  return config;
}

RunConfig read_run_config_text(const std::string& text, const std::string& where,
                               const std::vector<std::string>& overrides, ConfigUse use) {
  return read_run_config(parse_config_document(text, where), overrides, use);
}

RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides,
                          int64_t version) {
  return read_run_config(read_config_document(path), overrides, ConfigUse::training, version);
}

ordered_json resolved_json(const RunConfig& config) {
  ordered_json out = ordered_json::object();
  for (const Key& key : all_keys()) {
    ordered_json* at = &out;
    std::istringstream names(key.path);
    std::string name;
    while (std::getline(names, name, '.')) at = &(*at)[name];
    *at = key.get(config);
  }
  return out;
}

}  // namespace bamtrain
