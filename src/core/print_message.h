#pragma once
// Messages of a command, apart from its result.

#include <cstdio>
#include <string>

#include "core/utf8.h"

namespace bamtrain {

/// A line for people (printable, core/utf8.h), written to `out` at once; lost where `out` takes no
/// more. What the command makes is not the worse for that, and its exit code speaks of what it
/// makes.
inline void print_message(std::FILE* out, const std::string& text) {
  std::fputs((printable(text) + "\n").c_str(), out);
  std::fflush(out);
}

}  // namespace bamtrain
