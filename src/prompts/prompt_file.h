#pragma once
// Prompts written by RULER's own generator, one JSON object per line:
//
//   {"input": "...", "outputs": ["...", ...]}
//
// If present, "answer_prefix" is appended to the input. Other members are ignored.

#include <string>
#include <vector>

#include "prompts/text_prompt.h"

namespace bamtrain {

/// Reads the prompts in file order, all with `tokens_to_generate`; no `needles`. Throws Error
/// (ExitCode::data) with file and line for any other line, and for a file without prompts; Error
/// (ExitCode::io) if it cannot be read.
std::vector<TextPrompt> read_prompts(const std::string& path, int64_t tokens_to_generate);

}  // namespace bamtrain
