#pragma once

#include <cstdint>
#include <string>

namespace bamtrain {

/// The first `bytes` bytes, or fewer, of the file at `path`, to decide whether an output may
/// replace it. Empty if the path is missing or not a regular file. Throws Error (ExitCode::io) if
/// the file cannot be read.
std::string beginning_of(const std::string& path, int64_t bytes);

}  // namespace bamtrain
