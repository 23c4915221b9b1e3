#pragma once
// The single table of all keys of a run configuration: name, meaning, allowed values and member of
// RunConfig. The reader, the validation, the schema, the resolved configuration, suggestions for
// unknown names and the comparison on resume all use it.

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
  bool names_mechanism = false;  // the value is an object that names one, or a list of them
  bool required = false;
  /// For a key that only some configurations need: whether `document` needs it. Null: never.
  bool (*needed)(const nlohmann::json& document) = nullptr;
  bool free_on_resume = false;  // a resumed run may change it

  /// Returns the value in the struct, as JSON.
  std::function<nlohmann::ordered_json(const RunConfig&)> get = nullptr;
  /// Checks a value against the schema and stores it. Throws Error (ExitCode::config) at its
  /// origin.
  std::function<void(RunConfig&, const nlohmann::json&, const Origin&)> set = nullptr;
};

/// An object that holds keys: "model.norm".
struct KeyGroup {
  std::string path;
  std::string description;
};

/// In the order of documentation and output; the keys of a group are adjacent.
const std::vector<Key>& all_keys();
const std::vector<KeyGroup>& all_groups();

/// The key with that path, or null.
const Key* find_key(const std::string& path);
/// The key whose value contains `path`: the key itself, a mechanism's option or a map's entry. Null
/// if there is none.
const Key* find_owner(const std::string& path);
bool is_group(const std::string& path);

/// The names directly below a group; "" is the document.
std::vector<std::string> members(const std::string& group);

/// The remedy for an unknown path, with a suggestion: a sibling with a similar spelling, else a key
/// elsewhere whose last name is similar, else the closest path of all.
std::string unknown_key_remedy(const std::string& path);

/// A configuration with all defaults of a config_version; required keys are zero or empty.
RunConfig default_run_config(int64_t version);

}  // namespace bamtrain
