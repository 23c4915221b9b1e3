#pragma once
// A task as a source, {"task": NAME, "length": [shortest, longest], <its options>}, between JSON
// and TaskChoice. Names and options come from the registry (tasks/).

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "core/options.h"
#include "data/data_config.h"

namespace bamtrain {

/// Whether a source is meant to be a task.
bool is_task(const nlohmann::json& value);

/// The object at key `path`, which may have members `beside` those of a task, which its own reader
/// reads. Error (ExitCode::config) for a name, a length or an option that no task has; `others` are
/// names that could have stood there too.
TaskChoice read_task(const nlohmann::json& value, const std::string& path, const Origin& origin,
                     int64_t version, const std::vector<std::string>& beside = {},
                     const std::vector<std::string>& others = {});
/// Its inverse, with every option.
nlohmann::ordered_json task_json(const TaskChoice& choice);

/// Error (ExitCode::config) for a key of the object at `path` that is none of those `known` of the
/// task of that name.
void require_known_keys(const nlohmann::json& value, const std::vector<std::string>& known,
                        const std::string& task, const std::string& path, const Origin& origin);

/// The keys of all tasks: which are a task's own, its reader says. `beside`: other properties, of
/// which the names are `required` too.
ValueSchema task_schema(const ValueSchema& beside = ValueSchema::object(),
                        const std::vector<std::string>& required = {});

/// Adds the options of a task to such a schema.
void add_options(const std::string& task, const std::vector<OptionSpec>& options,
                 ValueSchema* schema);

}  // namespace bamtrain
