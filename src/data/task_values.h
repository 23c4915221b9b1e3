#pragma once
// A task and its options as JSON, for files that say what was drawn.

#include <nlohmann/json.hpp>

#include "data/data_config.h"

namespace bamtrain {

/// {"task": its name, <every option>}.
inline nlohmann::json task_values(const TaskInfo& info, const Options& options) {
  nlohmann::json values = {{"task", info.name}};
  for (const auto& [name, value] : options.values()) {
    std::visit([&values, &name = name](const auto& v) { values[name] = v; }, value);
  }
  return values;
}

/// What it is about, whatever the length: {"task", <every option>, "samples", "seed", "bleu"}.
inline nlohmann::json request_values(const TaskRequest& request) {
  nlohmann::json values = task_values(*request.task.info, request.task.options);
  values["samples"] = request.samples;
  values["seed"] = request.seed;
  values["bleu"] = request.bleu;
  return values;
}

}  // namespace bamtrain
