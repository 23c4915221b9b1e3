#pragma once
// A task and its options as JSON, for files that record what was drawn.

#include <nlohmann/json.hpp>

#include "core/sha256.h"
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

/// The same for a task of a run. A task of an example file also gets "sha256", of that file and of
/// its tokenizer if named, since a path's content may change. Errors: as sha256_file.
inline nlohmann::json task_values(const TaskChoice& task) {
  nlohmann::json values = task_values(*task.info, task.options);
  if (!task.info->of_file || !task.options.has("path")) return values;
  for (const char* const file : {"path", "tokenizer"}) {
    const std::string& path = task.options.text(file);
    if (!path.empty()) values["sha256"].push_back(sha256_file(path));
  }
  return values;
}

/// The request without lengths: {"task", <every option>, "samples", "seed", "bleu"}. Errors: as
/// task_values.
inline nlohmann::json request_values(const TaskRequest& request) {
  nlohmann::json values = task_values(request.task);
  values["samples"] = request.samples;
  values["seed"] = request.seed;
  values["bleu"] = request.bleu;
  return values;
}

/// {"task", <every option>, "samples" (null: the task's default), "seed"}.
inline nlohmann::json request_values(const TextTaskRequest& request) {
  nlohmann::json values = task_values(request.info->name, request.options);
  values["samples"] = nullptr;
  if (request.samples) values["samples"] = *request.samples;
  values["seed"] = request.seed;
  return values;
}

}  // namespace bamtrain
