#pragma once
// Text tasks, which evaluate a model and train none: names and options for configurations and
// command lines. eval/text_evaluation.h implements them; their texts are ids of the model's
// tokenizer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/options.h"

namespace bamtrain {

struct TextTaskInfo {
  std::string name, description;
  std::vector<OptionSpec> options = {};
  bool of_lengths = false;                // prompts are made for each length; else read from a file
  std::vector<int64_t> lengths = {};      // default; empty: lengths must be given
  std::vector<std::string> numbers = {};  // names of its results; the first is the score
};

/// passkey, niah, choice, cloze, requests.
const std::vector<TextTaskInfo>& text_tasks();
/// Null if there is no such task.
const TextTaskInfo* find_text_task(const std::string& name);
std::vector<std::string> text_task_names();

/// A request to evaluate a model on such a task.
struct TextTaskRequest {
  const TextTaskInfo* info = nullptr;
  std::string name;                               // of its results; default: the task's
  Options options = {};                           // complete
  std::vector<int64_t> lengths = {};              // ascending, unique; empty for a file
  std::optional<int64_t> samples = std::nullopt;  // nullopt: the task's default
  uint64_t seed = 0;                              // of random draws
  std::vector<std::string> given = {};            // options set in a configuration
};

/// One result of a request: a request may have several RULER tasks.
struct TextTaskPart {
  std::string result;             // its name, "passkey@1024", "vt@4096", "hellaswag"
  std::string task;               // niah: RULER's name or the prompts' file; else request name
  std::optional<int64_t> length;  // nullopt: texts of a file have their own
};

/// In the order of evaluation: those of one task by length. If a niah request has a name other than
/// the task's, RULER's names are prefixed with it: "NAME.vt@4096".
std::vector<TextTaskPart> parts_of(const TextTaskRequest& request);

/// Throws Error (ExitCode::config) at "{KEY}" for invalid options or combinations. Does not check
/// what only a file or a tokenizer can tell.
void check_text_options(const TextTaskRequest& request);

/// KEY of an error at "{KEY}", as an entry of eval.tasks or of --task-set. Empty if the error is
/// about something else.
std::string key_in_braces(const std::string& where);

}  // namespace bamtrain
