#pragma once
// --task-set of bamtrain eval.

#include <map>
#include <string>
#include <vector>

namespace bamtrain {

/// KEY=VALUE, of each key the last. Error (ExitCode::usage): no value, no key, or no UTF-8.
std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings);
}  // namespace bamtrain
