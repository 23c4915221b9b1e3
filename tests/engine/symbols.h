#pragma once
// From addresses of code to lines of source, by the debug information of the executable and
// binutils' addr2line. Slow: for reports only.

#include <string>

namespace bamtrain::engine {

/// "file:line" of the call that returns to `return_address`: the innermost inlined frame that is a
/// kernel's, not the wrappers' or the engine's. Where there is no debug information or no
/// addr2line, the object file and the offset in it.
std::string source_line(const void* return_address);

/// Whether source_line() finds lines here, tried on a function of its own.
bool can_find_source_lines();

}  // namespace bamtrain::engine
