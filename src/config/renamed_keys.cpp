#include "config/renamed_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;

json::json_pointer pointer_to(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return json::json_pointer("/" + path);
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

void rename_key(json& document, const RenamedKey& key) {
  const json::json_pointer before = pointer_to(key.before);
  json value = std::move(document[before]);
  document[before.parent_pointer()].erase(before.back());
  document[pointer_to(key.now)] = std::move(value);
}

json with_current_names(json resolved) {
  for (const RenamedKey& key : renamed_keys()) {
    const bool has_before = find_value(resolved, key.before) != nullptr;
    if (has_before && find_value(resolved, key.now) == nullptr) rename_key(resolved, key);
  }
  return resolved;
}

}  // namespace bamtrain
