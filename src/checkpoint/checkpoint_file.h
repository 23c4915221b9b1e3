#pragma once
// Opens a file of a checkpoint for reading.

#include <string>

#include "core/input_file.h"

namespace bamtrain {

/// The remedy for a file of a checkpoint that is missing, damaged or from another program.
inline constexpr const char* kDamagedRemedy =
    "use another checkpoint, or restore this one from a copy";

/// Every failure, now or while reading, throws an Error naming the file: (io) if the system cannot
/// read it now, which is not damage; (checkpoint) otherwise.
inline InputFile open_checkpoint_file(const std::string& path) {
  return {path, ExitCode::checkpoint, kDamagedRemedy, InputFile::Refusals::passing};
}

}  // namespace bamtrain
