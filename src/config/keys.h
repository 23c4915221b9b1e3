#pragma once
// Every key of a run configuration, once: its name, what it means, what it may hold, where it goes
// in RunConfig. The reader, the validation, the schema, the resolved configuration, the messages
// with the nearest name and the comparison on resume all work from this table.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/mechanism.h"
#include "config/origin.h"
#include "config/value_schema.h"
#include "train/run_config.h"

namespace bamtrain {

struct Key {
  std::string path;  // "model.norm.eps"
  std::string description;
  ValueSchema schema;
  bool names_mechanism = false;  // the value is an object that names one, or a list of such
  bool required = false;
  /// Of a key that some configurations need: whether this one does. Null: none does.
  bool (*needed)(const nlohmann::json& document) = nullptr;
  bool free_on_resume = false;  // a resumed run may differ here from the run it continues

  /// The value in the struct, as JSON.
  std::function<nlohmann::ordered_json(const RunConfig&)> get = nullptr;
  /// Checks a value against the schema and stores it. Error (ExitCode::config) names the origin.
  std::function<void(RunConfig&, const nlohmann::json&, const Origin&)> set = nullptr;
};

/// An object that holds keys: "model.norm".
struct KeyGroup {
  std::string path;
  std::string description;
};

/// In the order in which they are documented and written; the keys of a group are neighbours.
const std::vector<Key>& all_keys();
const std::vector<KeyGroup>& all_groups();

/// The key of that path, or null.
const Key* find_key(const std::string& path);
/// The key whose value holds `path`: itself, a mechanism's option or a map's entry; or null.
const Key* find_owner(const std::string& path);
bool is_group(const std::string& path);

/// The names directly below a group; of the document for "".
std::vector<std::string> members(const std::string& group);

/// The remedy for a path that is not known, with what it most likely means: a neighbour spelt
/// nearly the same, else a key elsewhere whose last name is nearly the same, else the nearest of
/// all.
std::string unknown_key_remedy(const std::string& path);

/// The config_version of a document; the newest where it says none that is known.
int64_t config_version_of(const nlohmann::json& document);

/// A configuration with every default of a config_version; required keys are at zero or empty.
RunConfig default_run_config(int64_t version);

}  // namespace bamtrain
