#pragma once
// Names of what an interrupted save or prune leaves in the folder of checkpoints.

#include <filesystem>
#include <string>
#include <system_error>

namespace bamtrain::leftovers {

inline constexpr const char* kTemporary = ".tmp-";      // + checkpoint name: to be removed
inline constexpr const char* kTrial = ".tmp-trial";     // likewise, see run/shared_saves.h
inline constexpr const char* kReplaced = ".replaced-";  // + checkpoint name: valid, see publish()

/// Whether there is anything at `path`. True if unknown, so that the next operation reports the
/// reason.
inline bool exists(const std::string& path) {
  std::error_code failure;
  const auto status = std::filesystem::symlink_status(path, failure);
  return status.type() != std::filesystem::file_type::not_found;
}

}  // namespace bamtrain::leftovers
