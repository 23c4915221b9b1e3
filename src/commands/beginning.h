#pragma once

#include <cstdint>
#include <string>

namespace bamtrain {

/// The first `bytes` bytes, or fewer, of the file at `path`, by which it is told whether an output
/// may take its place; empty where there is none, or what is no file. Error (ExitCode::io) where it
/// cannot be read.
std::string beginning_of(const std::string& path, int64_t bytes);

}  // namespace bamtrain
