#pragma once
// Maps code addresses to source lines, using the executable's debug information and binutils'
// addr2line. Slow: for reports only.

#include <string>

namespace bamtrain::engine {

/// "file:line" of the call that returns to `return_address`. It is the innermost inlined frame in a
/// kernel, not in a wrapper or the engine. Without debug information or addr2line, returns the
/// object file and the offset in it.
std::string source_line(const void* return_address);

/// Whether source_line() finds lines here, tested on one of its own functions.
bool can_find_source_lines();

}  // namespace bamtrain::engine
