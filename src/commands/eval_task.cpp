// bamtrain eval --task: scores of a task at lengths beyond the training lengths.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "commands/eval.h"
#include "commands/eval_result.h"
#include "commands/load_checkpoint.h"
#include "commands/task_settings.h"
#include "config/reader.h"
#include "config/task.h"
#include "core/clustered_mean.h"
#include "core/faults.h"
#include "core/join.h"
#include "eval/task_scores.h"
#include "tasks/file.h"
#include "tasks/registry.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

void require_known(const std::string& task) {
  if (find_task(task) != nullptr) return;
  if (task == file_task().name) {
    throw Error::fault(ExitCode::usage, "--task", task + " reads its examples from a file",
                       "name the file in the run's data.val: validation measures it");
  }
  std::vector<std::string> names = task_names();
  std::vector<std::string> others = kPromptTasks;
  others.insert(others.end(), kRetrievalTasks.begin(), kRetrievalTasks.end());
  names.insert(names.end(), others.begin(), others.end());
  throw unknown_name(ExitCode::usage, "--task", "task", task, names,
                     "choose one of " + join(others) + ", or of bamdata synth --help");
}

/// The task with the run's options, without its lengths.
json options_of(const TaskChoice& task) {
  json value = task_json(task);
  value.erase("length");
  return value;
}

/// The task with the run's options from data.train, else from data.val, else with the defaults.
/// Throws Error if sources of data.train disagree on an option that `given` does not set.
json task_of_run(const std::string& name, const RunConfig& c,
                 const std::map<std::string, std::string>& given) {
  json value;
  for (const DataSource& s : c.data.train.list) {
    if (!s.task || s.task->info->name != name) continue;
    const json other = options_of(*s.task);
    if (value.is_null()) value = other;
    for (const auto& [key, option] : other.items()) {
      if (option == value[key] || given.count(key) > 0) continue;
      throw Error::fault(ExitCode::usage, "--task-set",
                         "data.train has " + name + " with " + key + " " + value[key].dump() +
                             " and " + option.dump(),
                         "give --task-set " + key + "=VALUE");
    }
  }
  if (value.is_null() && c.data.val_task && c.data.val_task->info->name == name) {
    value = options_of(*c.data.val_task);
  }
  return value.is_null() ? json{{"task", name}} : value;
}

/// The value of an option: a number or boolean if the option is one, else a string.
json option_value(const std::string& task, const std::string& key, const std::string& text) {
  for (const OptionSpec& option : find_task(task)->options) {
    if (option.name != key || std::holds_alternative<std::string>(option.default_value)) continue;
    const json value = json::parse(text, nullptr, false);
    if (value.is_number() || value.is_boolean()) return value;
  }
  return text;
}

TaskChoice task_of(const EvalArguments& arguments, const RunConfig& c) {
  const std::map<std::string, std::string> given = task_settings(arguments.task_settings);
  json value = task_of_run(arguments.task, c, given);
  for (const auto& [key, text] : given) {
    if (key == "task" || key == "length") {
      throw Error(ExitCode::usage, "--task-set", "an option of the task", key + "=" + text,
                  "give --" + std::string(key == "task" ? "task" : "lengths") + " instead");
    }
    value[key] = option_value(arguments.task, key, text);
  }
  try {
    return read_task(value, "--task", Origin{}, c.config_version);
  } catch (const Error& e) {
    throw e.as(ExitCode::usage, "--task-set", "bamdata synth --help lists the options of tasks");
  }
}

TaskRequest request_of(const EvalArguments& given, const RunConfig& c) {
  const EvalArguments arguments = with_lengths(given, c);
  return {arguments.task, task_of(arguments, c), ascending(arguments.lengths),
          arguments.samples.value_or(1000), arguments.seed.value_or(0)};
}

std::string with_error(const ordered_json& row, const std::string& name) {
  const ordered_json& error = row[name + "_error"];
  return fmt::format("{:.4f}{}", row[name].get<double>(),
                     error.is_null() ? "" : plus_minus(error.get<double>(), 4));
}

void print_task_scores(const ordered_json& result) {
  fmt::print("{}, {} sequences at each length\n", result["task"]["task"].get<std::string>(),
             result["samples"].get<int64_t>());
  for (const ordered_json& row : result["scores"]) {
    fmt::print("  length {:>7}  exact match {}  accuracy {}  loss {}\n",
               row["length"].get<int64_t>(), with_error(row, "exact_match"),
               with_error(row, "accuracy"), with_error(row, "loss"));
  }
  fmt::print("±: standard error over sequences; seed variance not included\n");
}

void require_finite_scores(const ordered_json& result) {
  for (const ordered_json& row : result["scores"]) {
    const auto loss = row["loss"].get<double>();
    if (std::isfinite(loss)) continue;
    throw Error(ExitCode::nonfinite, result["checkpoint"].get<std::string>(), "finite losses",
                fmt::format("{} at length {}", std::isnan(loss) ? "NaN" : "infinity",
                            row["length"].get<int64_t>()),
                "try --precision fp32, then an earlier checkpoint");
  }
}

/// Whether a file's row has the form of score_task's. Rows with non-finite losses do not.
bool is_row(const ordered_json& row) {
  if (!row.is_object() || !row.contains("length") || !is_row_length(row["length"])) return false;
  for (const char* name : {"loss", "accuracy", "exact_match"}) {
    const auto number = row.find(name), error = row.find(std::string(name) + "_error");
    if (number == row.end() || error == row.end()) return false;
    if (!number->is_number() || (!error->is_number() && !error->is_null())) return false;
  }
  return true;
}

/// Rows by length.
using Rows = std::map<int64_t, ordered_json>;

/// The scores in the file at `path`.
Rows scores_before(const std::string& path, const ordered_json& result) {
  Rows rows;
  for (ordered_json& row : rows_before(path, result, {"scores"})) {
    if (!is_row(row)) continue;
    const auto length = row["length"].get<int64_t>();
    rows[length] = std::move(row);
  }
  return rows;
}

}  // namespace

int run_eval_task(const EvalArguments& arguments) {
  require_known(arguments.task);
  check_lengths(arguments);
  check_output(arguments.output);
  const Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  const TaskRequest request = request_of(arguments, c);
  const std::unique_ptr<Backend> backend = eval_backend(arguments, c);
  const ParameterLayout layout(c.model, c.data.sequence_length);
  const Precision precision = arguments.precision.value_or(c.train.precision);
  const Dtype activations = activation_dtype(precision);
  Tensor master_weights;
  const ScoredModel model = {c.model, c.data.sequence_length, *backend, activations,
                             master_weights};
  check_task_request(request, model);
  check_memory(backend->memory(), layout, task_scores_bytes(request, model),
               "memory of the model and sequences (--samples, --lengths)", "lower them");
  Arena arena;
  master_weights = load_master_weights(checkpoint, layout, *backend, arena);
  ordered_json task = task_json(request.task);
  task.erase("length");
  ordered_json result = checkpoint_facts(checkpoint, c);
  result.update({{"task", task},
                 {"samples", request.samples},
                 {"seed", request.seed},
                 {"precision", computed_in(precision)},
                 {"training_length", c.data.sequence_length}});
  Rows rows = scores_before(arguments.output, result);
  const auto put = [&] {
    result["scores"] = ordered_json::array();
    for (const auto& [length, row] : rows) result["scores"].push_back(row);
    write_result(arguments.output, result);
  };
  const ProgressLine line;
  for (const int64_t length : request.lengths) {
    if (rows.contains(length)) continue;
    ordered_json row = {{"length", length}};
    row.update(score_task(request, length, TaskSet::test, model, TaskShare{},
                          line.progress(fmt::format("{} at {}", arguments.task, length))));
    rows[length] = std::move(row);
    put();
  }
  put();
  line.clear();
  print_task_scores(result);
  require_finite_scores(result);
  return 0;
}

}  // namespace bamtrain
