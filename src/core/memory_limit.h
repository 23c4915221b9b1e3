#pragma once
// How much memory this process may use.

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"

namespace bamtrain {

struct MemoryLimit {
  int64_t bytes = 0;
  const char* source = "";  // "all of this machine"
};

/// The minimum of the machine's memory, this process's limit (ulimit -v) and its control groups'.
MemoryLimit memory_limit();

/// The Error (ExitCode::device) to report for a std::bad_alloc. `lower` says what the command can
/// lower, as a remedy besides more memory; it may be empty.
Error out_of_memory(const std::string& lower);

/// The lowest limit of this process's control groups and all their ancestors: memory.max of version
/// 2, memory.limit_in_bytes of version 1 (cgroups(7)). Returns nullopt if no file sets a limit.
/// `root` replaces "/": reads ROOT/proc/self/cgroup and files below ROOT/sys/fs/cgroup, where
/// systems mount them.
std::optional<int64_t> control_group_limit(const std::string& root = "");

}  // namespace bamtrain
