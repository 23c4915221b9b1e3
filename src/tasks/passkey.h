#pragma once
// "passkey": BAM's prompts with a number to find, in ids of a tokenizer. No entry of the registry:
// what its sequences are, only a tokenizer's file says (prompts/passkey_task.h).

#include "tasks/task.h"

namespace bamtrain {

inline constexpr int64_t kMostPasskeyDigits = 9;

/// A source of length n is a prompt of at most n tokens, without the answer.
const TaskInfo& passkey_task();

/// Error (ExitCode::config) at "{prefix_digits}" where `options`, with those of the task, ask for
/// no digit.
void check_passkey_digits(const Options& options);

}  // namespace bamtrain
