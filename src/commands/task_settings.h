#pragma once
// --task-set of bamtrain eval.

#include <map>
#include <string>
#include <vector>

namespace bamtrain {

/// Parses KEY=VALUE; the last of equal keys wins. Throws Error (ExitCode::usage) for a missing key
/// or value, and for invalid UTF-8.
std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings);
}  // namespace bamtrain
