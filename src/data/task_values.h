#pragma once
// A task and its options as JSON, for files that say what was drawn.

#include <nlohmann/json.hpp>

#include "data/data_config.h"
#include "tasks/text_task.h"

namespace bamtrain {

/// {"task": its name, <every option>}.
inline nlohmann::json task_values(const std::string& task, const Options& options) {
  nlohmann::json values = {{"task", task}};
  for (const auto& [name, value] : options.values()) {
    std::visit([&values, &name = name](const auto& v) { values[name] = v; }, value);
  }
  return values;
}
inline nlohmann::json task_values(const TaskInfo& info, const Options& options) {
  return task_values(info.name, options);
}

/// What it is about, whatever the length: {"task", <every option>, "samples", "seed", "bleu"}.
inline nlohmann::json request_values(const TaskRequest& request) {
  nlohmann::json values = task_values(*request.task.info, request.task.options);
  values["samples"] = request.samples;
  values["seed"] = request.seed;
  values["bleu"] = request.bleu;
  return values;
}

/// {"task", <every option>, "samples", null where the task says how many, "seed"}.
inline nlohmann::json request_values(const TextTaskRequest& request) {
  nlohmann::json values = task_values(request.info->name, request.options);
  values["samples"] = nullptr;
  if (request.samples) values["samples"] = *request.samples;
  values["seed"] = request.seed;
  return values;
}

}  // namespace bamtrain
