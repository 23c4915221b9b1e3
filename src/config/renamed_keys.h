#pragma once
// Keys that had another name in earlier config_versions.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bamtrain {

struct RenamedKey {
  std::string before, now;   // "eval.insist", "eval.require_all_lengths"
  int64_t last_version = 0;  // config_version up to which the earlier name is accepted
};

const std::vector<RenamedKey>& renamed_keys();

/// The entry whose earlier name is `path`, or null.
const RenamedKey* find_renamed_key(const std::string& path);

/// A resolved configuration of any version with current names. If both names are present, both
/// stay.
nlohmann::json with_current_names(nlohmann::json resolved);

/// Moves the value at `before` to `now`. REQUIRES: the document has `before` and not `now`.
void rename_key(nlohmann::json& document, const RenamedKey& key);

}  // namespace bamtrain
