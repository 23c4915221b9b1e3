#pragma once
// What differs between two resolved configurations, and what a resumed run may not change.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bamtrain {

/// The paths ("model.norm.eps") at which two documents differ, sorted. Arrays are compared whole.
std::vector<std::string> changed_keys(const nlohmann::json& a, const nlohmann::json& b);

/// Of the changed paths, those that a resumed run must not change: all but the keys marked so in
/// the table (out_dir, data.train, data.val, data.verify, device, name, train.stop_at, checkpoint,
/// eval, log), those in or below an entry of `allow_change`, and multipliers that are no longer
/// there, of what is not trained. REQUIRES: both as resolved_json writes them.
std::vector<std::string> keys_refused_on_resume(const nlohmann::json& before,
                                                const nlohmann::json& now,
                                                const std::vector<std::string>& allow_change);

}  // namespace bamtrain
