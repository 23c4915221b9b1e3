#pragma once
// Converts a task as a data source, {"task": NAME, "length": [shortest, longest], <its options>},
// between JSON and TaskChoice. Names and options come from the registry (tasks/).

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "core/options.h"
#include "data/data_config.h"

namespace bamtrain {

/// Whether a source has the form of a task.
bool is_task(const nlohmann::json& value);

/// Reads the object at key `path`. It may have members `beside` those of a task, which the caller
/// reads. Throws Error (ExitCode::config) for an invalid name, length or option; `others` are
/// further names that would have been valid there.
TaskChoice read_task(const nlohmann::json& value, const std::string& path, const Origin& origin,
                     int64_t version, const std::vector<std::string>& beside = {},
                     const std::vector<std::string>& others = {});
/// The inverse, with every option.
nlohmann::ordered_json task_json(const TaskChoice& choice);

/// Throws Error (ExitCode::config) for a key of the object at `path` that is not in `known`, the
/// keys of the task named `task`.
void require_known_keys(const nlohmann::json& value, const std::vector<std::string>& known,
                        const std::string& task, const std::string& path, const Origin& origin);

/// The keys of all tasks; the reader checks which ones a given task has. `beside`: other
/// properties. `required`: names that are required besides "task".
ValueSchema task_schema(const ValueSchema& beside = ValueSchema::object(),
                        const std::vector<std::string>& required = {});

/// Adds the options of a task to such a schema.
void add_options(const std::string& task, const std::vector<OptionSpec>& options,
                 ValueSchema* schema);

}  // namespace bamtrain
