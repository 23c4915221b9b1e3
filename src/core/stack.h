#pragma once

#include <sys/resource.h>

#include <string>

#include "core/error.h"

namespace bamtrain {

/// Of the first thread, and by default of each other. The system gives 8 MiB.
inline constexpr rlim_t kLeastStack = rlim_t{1} << 20;

/// Error (ExitCode::device) where stacks have less: what overflows one ends the process without a
/// word.
inline void require_stack() {
  rlimit stack = {};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kLeastStack) return;
  throw Error(ExitCode::device, "the limit of stacks (ulimit -s)",
              "at least " + std::to_string(kLeastStack >> 10) + " KiB",
              std::to_string(stack.rlim_cur >> 10), "ulimit -s 8192");
}

}  // namespace bamtrain
