#pragma once
// What differs between two resolved configurations, and what a resumed run may not change.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bamtrain {

/// The paths ("model.norm.eps") at which two documents differ, sorted. Arrays are compared whole.
std::vector<std::string> changed_keys(const nlohmann::json& a, const nlohmann::json& b);

/// Whether only `now` has the key, at its default: the earlier run's program did not know it yet,
/// and did what is the default since in runs of its config_version.
bool is_newer_default(const std::string& path, const nlohmann::json& before,
                      const nlohmann::json& now);

/// Of the changed paths, those that a resumed run must not change: all but the keys marked so in
/// the table (out_dir, data.train, data.val, data.verify, device, name, train.stop_at, checkpoint,
/// eval, log), those in or below an entry of `allow_change`, and multipliers that are no longer
/// there, of what is not trained. Numbers that a length gives and that `before` has of the model
/// that it began from may be left open. REQUIRES: both as resolved_json writes them.
std::vector<std::string> keys_refused_on_resume(const nlohmann::json& before,
                                                const nlohmann::json& now,
                                                const std::vector<std::string>& allow_change);

}  // namespace bamtrain
