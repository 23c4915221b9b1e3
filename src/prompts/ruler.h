#pragma once
// RULER's tasks, by RULER's names.

#include <string>
#include <vector>

#include "prompts/needles.h"
#include "prompts/prompt_set.h"

namespace bamtrain {

/// The eight of needles.h, then vt (variable_tracking.h), cwe (common_words.h) and fwe
/// (frequent_words.h). RULER's two question-answering tasks need data that we do not ship:
/// read_prompts (prompt_file.h) reads what RULER's own generator writes for them.
std::vector<std::string> ruler_tasks();
bool is_ruler_task(const std::string& name);

/// Prompts of at most `length` tokens, including the answer's. `needles` applies to the eight
/// needle tasks; a depth with another task is an error, as with several needles. Errors as the
/// tasks' own; Error (ExitCode::config) at "{task}" for an unknown name.
PromptSet ruler_prompts(const std::string& task, const NeedleOptions& needles, int64_t length,
                        uint64_t seed, const TokenCount& count);

}  // namespace bamtrain
