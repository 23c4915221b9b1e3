#pragma once
// Messages of a command, separate from its result.

#include <cstdio>
#include <string>

#include "core/utf8.h"

namespace bamtrain {

/// Writes a line for people (printable, core/utf8.h) to `out` and flushes it. Write errors are
/// ignored: they do not affect the command's result, and its exit code is about that result.
inline void print_message(std::FILE* out, const std::string& text) {
  std::fputs((printable(text) + "\n").c_str(), out);
  std::fflush(out);
}

}  // namespace bamtrain
