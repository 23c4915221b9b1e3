#pragma once
// Prompts that RULER's own generator wrote: a JSON object a line,
//
//   {"input": "...", "outputs": ["...", ...]}
//
// and "answer_prefix", where it has that, behind the input. Other members are not read.

#include <string>
#include <vector>

#include "prompts/text_prompt.h"

namespace bamtrain {

/// In the file's order, all with `tokens_to_generate`; no `needles`. Error (ExitCode::data) naming
/// file and line for what is no such object, and for a file without any; (ExitCode::io) where it
/// cannot be read.
std::vector<TextPrompt> read_prompts(const std::string& path, int64_t tokens_to_generate);

}  // namespace bamtrain
