#pragma once
// The differences between two resolved configurations, and those that a resumed run must not have.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bamtrain {

/// The sorted paths ("model.norm.eps") at which two documents differ. Arrays are compared whole.
std::vector<std::string> changed_keys(const nlohmann::json& a, const nlohmann::json& b);

/// Whether only `now` has the key, at its default. The earlier run's program did not know the key;
/// it behaved like the default for the run's config_version.
bool is_newer_default(const std::string& path, const nlohmann::json& before,
                      const nlohmann::json& now);

/// The changed paths that a resumed run must not change. Allowed changes are:
/// - keys marked free_on_resume in the table, and paths in or below an entry of `allow_change`;
/// - keys at a newer default, config_version if the defaults are the same, and data.document_start
///   without document masks;
/// - removed learning rate multipliers of something that is not trained;
/// - 0 for a number derived from a length that `before` took from the model it started from.
///
/// REQUIRES: both as resolved_json writes them.
std::vector<std::string> keys_refused_on_resume(const nlohmann::json& before,
                                                const nlohmann::json& now,
                                                const std::vector<std::string>& allow_change);

}  // namespace bamtrain
