#pragma once
// Tasks of texts, which measure a model and train none: their names and options, for configurations
// and command lines. What they do is in eval/text_evaluation.h; their texts are ids of the model's
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
  bool of_lengths = false;                // prompts are made for each length; else a file has them
  std::vector<int64_t> lengths = {};      // where none are asked for; empty: some must be
  std::vector<std::string> numbers = {};  // of its results, the first the score
};

/// passkey, niah, choice, cloze, requests.
const std::vector<TextTaskInfo>& text_tasks();
/// Null: none of them has that name.
const TextTaskInfo* find_text_task(const std::string& name);
std::vector<std::string> text_task_names();

/// What is asked of a model by such a task.
struct TextTaskRequest {
  const TextTaskInfo* info = nullptr;
  std::string name;                               // of its results; the task's, where not chosen
  Options options = {};                           // complete
  std::vector<int64_t> lengths = {};              // ascending, unique; none of a file
  std::optional<int64_t> samples = std::nullopt;  // none: as many as the task has for that
  uint64_t seed = 0;                              // of what is drawn
  std::vector<std::string> given = {};            // options that were asked for, of a configuration
};

/// A result of it: RULER's tasks are several of one request.
struct TextTaskPart {
  std::string result;             // its name, "passkey@1024", "vt@4096", "hellaswag"
  std::string task;               // RULER's of niah, the file of its prompts, else the request's
  std::optional<int64_t> length;  // none: of a file, whose texts have their own
};

/// In the order in which they are measured, those of one task by length. A request of niah whose
/// name is another than the task's has it before those of RULER: "NAME.vt@4096".
std::vector<TextTaskPart> parts_of(const TextTaskRequest& request);

/// Error (ExitCode::config) at "{KEY}" for what must not be, or not together. What only a file or a
/// tokenizer can tell is not known here.
void check_text_options(const TextTaskRequest& request);

/// KEY of an entry of eval.tasks or of --task-set, of an error at "{KEY}"; empty: the error is
/// about something else.
std::string key_in_braces(const std::string& where);

}  // namespace bamtrain
