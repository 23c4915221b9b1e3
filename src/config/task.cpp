#include "config/task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/option.h"
#include "core/abbreviate.h"
#include "core/closest_match.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "tasks/registry.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// The tasks that a configuration may name.
std::vector<const TaskInfo*> known_tasks() {
  std::vector<const TaskInfo*> tasks;
  for (const TaskInfo& t : all_tasks()) tasks.push_back(&t);
  tasks.insert(tasks.end(), tasks_of_files().begin(), tasks_of_files().end());
  return tasks;
}

/// The limits for any task; each task has its own within these.
ValueSchema length_schema() {
  int64_t most = 1;
  for (const TaskInfo* t : known_tasks()) most = std::max(most, t->most_length);
  return tuple_of(integer_value(1, most), 2);
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const TaskInfo* t : known_tasks()) names.push_back(t->name);
  return names;
}

const TaskInfo& named_task(const json& value, const std::string& path, const Origin& origin,
                           const std::vector<std::string>& others) {
  const json& name = value["task"];
  const std::string where = origin.at(path + ".task");
  check_value(name, nonempty_text(), where);
  for (const TaskInfo* t : known_tasks()) {
    if (name == t->name) return *t;
  }
  std::vector<std::string> names = known_names();
  for (const std::string& other : others) {
    if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
  }
  throw unknown_name(ExitCode::config, where, "task", name, names);
}

/// Adds `task` to `before`, the description of an option of other tasks: "niah, choice: a file;
/// passkey: a number".
std::string with_task(std::string before, const std::string& task, const std::string& text) {
  if (before.empty()) return task + ": " + text;
  const std::string same = ": " + text;
  const size_t at = (before + ";").find(same + ";");
  if (at == std::string::npos) return before + "; " + task + same;
  return before.insert(at, ", " + task);
}

}  // namespace

bool is_task(const json& value) { return value.is_object() && value.contains("task"); }

TaskChoice read_task(const json& value, const std::string& path, const Origin& origin,
                     int64_t version, const std::vector<std::string>& beside,
                     const std::vector<std::string>& others) {
  const TaskInfo& info = named_task(value, path, origin, others);
  std::vector<std::string> known = {"task"};
  if (!info.of_file) known.emplace_back("length");
  for (const OptionSpec& o : info.options) known.push_back(o.name);
  known.insert(known.end(), beside.begin(), beside.end());
  require_known_keys(value, known, info.name, path, origin);
  TaskChoice choice = {&info, read_options(value, info.options, path, origin, version),
                       info.lengths};
  if (info.of_file && choice.options.text("path").empty()) {
    throw missing(ExitCode::config, origin.at(path + ".path"), "the path of a file of JSON lines",
                  "add \"path\"; see bamtrain help tasks");
  }
  if (info.of_tokenizer && choice.options.text("tokenizer").empty()) {
    throw missing(ExitCode::config, origin.at(path + ".tokenizer"), "the path of a tokenizer file",
                  "add \"tokenizer\"; see bamtrain help tasks");
  }
  if (value.contains("length")) {
    const std::string where = origin.at(path + ".length");
    const json& length = value["length"];
    check_value(length, length_schema(), where);
    choice.lengths = {length[0].get<int64_t>(), length[1].get<int64_t>()};
    check_lengths(info, choice.lengths, where);
  }
  return choice;
}

void require_known_keys(const json& value, const std::vector<std::string>& known,
                        const std::string& task, const std::string& path, const Origin& origin) {
  for (const auto& [name, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error::fault(ExitCode::config, origin.at(path + "." + abbreviate(name)), "unknown key",
                       did_you_mean(name, known, task + " has the keys " + join(known)));
  }
}

ordered_json task_json(const TaskChoice& choice) {
  ordered_json out = {{"task", choice.info->name}};
  if (!choice.info->of_file) out["length"] = {choice.lengths.shortest, choice.lengths.longest};
  out.update(options_json(choice.info->options, choice.options));
  return out;
}

ValueSchema task_schema(const ValueSchema& beside, const std::vector<std::string>& required) {
  ValueSchema name = one_of(known_names()), length = length_schema();
  name["description"] = "name of the task; bamdata synth prints its sequences";
  length["description"] = "shortest and longest source, in tokens; default: the task's own";
  ValueSchema all = {"task"};
  for (const std::string& more : required) all.push_back(more);
  ValueSchema schema = {{"type", "object"},
                        {"description", "a task"},
                        {"properties", {{"task", name}, {"length", length}}},
                        {"required", all},
                        {"additionalProperties", false}};
  for (const TaskInfo* t : known_tasks()) add_options(t->name, t->options, &schema);
  schema["properties"].update(beside);
  return schema;
}

void add_options(const std::string& task, const std::vector<OptionSpec>& options,
                 ValueSchema* entry) {
  ValueSchema& properties = (*entry)["properties"];
  for (const OptionSpec& o : options) {
    ValueSchema schema = option_schema(o);
    std::string text = o.description, before;
    if (properties.contains(o.name)) {  // another task has it too, with the same type
      const ValueSchema& other = properties[o.name];
      before = other["description"];
      if (before.find(task + ": " + text) != std::string::npos) continue;
      if (other.value("default", ValueSchema()) != schema["default"]) {  // different defaults
        if (other.contains("default")) before += ", by default " + other["default"].dump();
        text += ", by default " + schema["default"].dump();
        schema.erase("default");
      }
    }
    std::string description = with_task(before, task, text);
    properties[o.name] = std::move(schema);
    properties[o.name]["description"] = std::move(description);
  }
}

}  // namespace bamtrain
