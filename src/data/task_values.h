#pragma once
// A task and its options as JSON, for files that say what was drawn.

#include <nlohmann/json.hpp>

#include "tasks/task.h"

namespace bamtrain {

/// {"task": its name, <every option>}.
inline nlohmann::json task_values(const TaskInfo& info, const Options& options) {
  nlohmann::json values = {{"task", info.name}};
  for (const auto& [name, value] : options.values()) {
    std::visit([&values, &name = name](const auto& v) { values[name] = v; }, value);
  }
  return values;
}

}  // namespace bamtrain
