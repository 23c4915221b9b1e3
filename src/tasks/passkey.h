#pragma once
// "passkey": BAM's prompts with a number to find, in ids of a tokenizer. Not in the registry: only
// a tokenizer's file determines its sequences (prompts/passkey_task.h).

#include "tasks/task.h"

namespace bamtrain {

inline constexpr int64_t kMostPasskeyDigits = 9;

/// A source of length n is a prompt of at most n tokens, without the answer.
const TaskInfo& passkey_task();

/// Throws Error (ExitCode::config) at "{prefix_digits}" if `options`, those of the task, request no
/// digit.
void check_passkey_digits(const Options& options);

}  // namespace bamtrain
