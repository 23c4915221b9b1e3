#include "config/renamed_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/document.h"
#include "config/keys.h"
#include "config/value_schema.h"
#include "core/error.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;

json::json_pointer pointer_to(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return json::json_pointer("/" + path);
}

/// Moves the value at `before` to `now`. REQUIRES: the document has `before` and not `now`.
void rename_key(json& document, const RenamedKey& key) {
  const json::json_pointer before = pointer_to(key.before);
  json value = std::move(document[before]);
  document[before.parent_pointer()].erase(before.back());
  document[pointer_to(key.now)] = std::move(value);
}

}  // namespace

const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> keys = {{"eval.insist", "eval.require_all_lengths", 2}};
  return keys;
}

const RenamedKey* find_renamed_key(const std::string& path) {
  for (const RenamedKey& key : renamed_keys()) {
    if (key.before == path) return &key;
  }
  return nullptr;
}

json with_current_names(json resolved) {
  for (const RenamedKey& key : renamed_keys()) {
    const bool has_before = find_value(resolved, key.before) != nullptr;
    if (has_before && find_value(resolved, key.now) == nullptr) rename_key(resolved, key);
  }
  return resolved;
}

void accept_earlier_names(json& document, const Origin& origin) {
  for (const RenamedKey& key : renamed_keys()) {
    const json* const value = find_value(document, key.before);
    if (value == nullptr || config_version_of(document) > key.last_version) continue;
    if (find_value(document, key.now) != nullptr) {
      throw Error(ExitCode::config, origin.at(key.before), "one name of the key",
                  "this and " + key.now, "remove one of them");
    }
    check_value(*value, find_key(key.now)->schema, origin.at(key.before));
    rename_key(document, key);
  }
}

}  // namespace bamtrain
