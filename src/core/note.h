#pragma once
// What a command says beside its result.

#include <cstdio>
#include <string>

namespace bamtrain {

/// A line for people, written to `out` at once; lost where `out` takes no more. What the command
/// makes is not the worse for that, and its exit code speaks of what it makes.
inline void note(std::FILE* out, const std::string& text) {
  std::fputs((text + "\n").c_str(), out);
  std::fflush(out);
}

}  // namespace bamtrain
