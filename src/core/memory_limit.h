#pragma once
// How much memory this process may use.

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"

namespace bamtrain {

struct MemoryLimit {
  int64_t bytes = 0;
  const char* source = "";  // "all that the machine has"
};

/// The least of the machine's memory, this process's limit (ulimit -v) and its control groups'.
MemoryLimit memory_limit();

/// What to say of a std::bad_alloc, by its place and code (ExitCode::device). `lower`: what the
/// command has to lower, a remedy of its own beside more memory; may be empty.
Error out_of_memory(const std::string& lower);

/// The least limit of the control groups that this process is in, each with all that it lies in:
/// memory.max of version 2, memory.limit_in_bytes of version 1 (cgroups(7)). None where no file
/// sets one. `root` stands for "/": the files read are ROOT/proc/self/cgroup and those below
/// ROOT/sys/fs/cgroup, where systems mount them.
std::optional<int64_t> control_group_limit(const std::string& root = "");

}  // namespace bamtrain
