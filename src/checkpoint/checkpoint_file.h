#pragma once
// A file of a checkpoint, opened for reading.

#include <string>

#include "core/input_file.h"

namespace bamtrain {

/// The remedy for a file of a checkpoint that is missing, damaged or not ours.
inline constexpr const char* kDamagedRemedy =
    "use another checkpoint, or restore this one from a copy";

/// Every failure, now or while reading, is an Error naming it: (io) where the system cannot read
/// it now, which is no damage; (checkpoint) otherwise.
inline InputFile open_checkpoint_file(const std::string& path) {
  return {path, ExitCode::checkpoint, kDamagedRemedy, InputFile::Refusals::passing};
}

}  // namespace bamtrain
