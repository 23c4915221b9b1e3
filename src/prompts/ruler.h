#pragma once
// RULER's tasks by its names for them.

#include <string>
#include <vector>

#include "prompts/needles.h"
#include "prompts/prompt_set.h"

namespace bamtrain {

/// The eight of needles.h, then vt (variable_tracking.h), cwe (common_words.h) and fwe
/// (frequent_words.h). Its two of question answering need data that is not here: read_prompts
/// (prompt_file.h) reads what RULER's own generator writes of them.
std::vector<std::string> ruler_tasks();
bool is_ruler_task(const std::string& name);

/// The prompts of at most `length` tokens with those of an answer. `needles` is for the eight; a
/// depth with another is an error as with several needles. Errors as the tasks' own;
/// (ExitCode::config) at "{task}" for a name that is none of them.
PromptSet ruler_prompts(const std::string& task, const NeedleOptions& needles, int64_t length,
                        uint64_t seed, const TokenCount& count);

}  // namespace bamtrain
