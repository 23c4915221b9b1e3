#pragma once
// Keys that had another name in earlier config_versions.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/origin.h"

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

/// Renames keys whose earlier names the document's version accepts. Throws Error (config) for a key
/// under both names.
void accept_earlier_names(nlohmann::json& document, const Origin& origin);

}  // namespace bamtrain
