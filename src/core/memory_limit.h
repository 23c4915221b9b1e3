#pragma once
// How much memory this process may use.

#include <cstdint>
#include <optional>
#include <string>

namespace bamtrain {

struct MemoryLimit {
  int64_t bytes = 0;
  const char* source = "";  // "all that the machine has"
};

/// The least of the machine's memory, this process's limit (ulimit -v) and its control groups'.
MemoryLimit memory_limit();

/// The least limit of the control groups that this process is in, each with all that it lies in:
/// memory.max of version 2, memory.limit_in_bytes of version 1 (cgroups(7)). None where no file
/// sets one. `root` stands for "/": the files read are ROOT/proc/self/cgroup and those below
/// ROOT/sys/fs/cgroup, where systems mount them.
std::optional<int64_t> control_group_limit(const std::string& root = "");

}  // namespace bamtrain
