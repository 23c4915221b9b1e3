#pragma once
// A task and its options as JSON, for files that say what was drawn.

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

/// The same of one that a run reads: of a file of examples with "sha256", its own and that of the
/// tokenizer where one is named, since a name may have another file by now. Errors as sha256_file.
inline nlohmann::json task_values(const TaskChoice& task) {
  nlohmann::json values = task_values(*task.info, task.options);
  if (!task.info->of_file || !task.options.has("path")) return values;
  for (const char* const file : {"path", "tokenizer"}) {
    const std::string& path = task.options.text(file);
    if (!path.empty()) values["sha256"].push_back(sha256_file(path));
  }
  return values;
}

/// What it is about, whatever the length: {"task", <every option>, "samples", "seed", "bleu"}.
/// Errors as task_values.
inline nlohmann::json request_values(const TaskRequest& request) {
  nlohmann::json values = task_values(request.task);
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
