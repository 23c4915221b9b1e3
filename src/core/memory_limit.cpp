#include "core/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace bamtrain {

namespace {

/// The number in the file; nullopt if the file is missing or holds a word such as "max".
std::optional<int64_t> limit_in(const std::string& path) {
  std::ifstream in(path);
  int64_t bytes = 0;
  if (!(in >> bytes) || bytes < 0) return std::nullopt;
  return bytes;
}

/// The minimum of `file` over MOUNT/group and its parents up to MOUNT. A container often mounts its
/// own group as MOUNT while `group` is the path outside; the folders in between are then missing.
std::optional<int64_t> least_upwards(const std::string& mount, std::string group,
                                     const std::string& file) {
  std::optional<int64_t> least;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    if (const auto limit = limit_in(mount + group + "/" + file)) {
      least = std::min(least.value_or(*limit), *limit);
    }
    if (group.empty()) return least;
    group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
  }
}

/// Whether the comma-separated `list` of controllers has `memory`.
bool has_memory(const std::string& list) {
  return ("," + list + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::optional<int64_t> control_group_limit(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::optional<int64_t> least;
  const auto consider = [&least](const std::optional<int64_t>& limit) {
    if (limit) least = std::min(least.value_or(*limit), *limit);
  };
  // Lines are "number:controllers:path"; for version 2 the number is 0 and the list is empty.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      consider(least_upwards(mount, group, "memory.max"));
    } else if (has_memory(controllers)) {
      consider(least_upwards(mount + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

MemoryLimit memory_limit() {
  MemoryLimit limit{int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE),
                    "all of this machine"};
  rlimit process = {};
  getrlimit(RLIMIT_AS, &process);
  if (process.rlim_cur != RLIM_INFINITY && process.rlim_cur < static_cast<rlim_t>(limit.bytes)) {
    limit = {static_cast<int64_t>(process.rlim_cur), "process limit"};
  }
  const std::optional<int64_t> group = control_group_limit();
  if (group && *group < limit.bytes) limit = {*group, "cgroup limit"};
  return limit;
}

Error out_of_memory(const std::string& lower) {
  const MemoryLimit limit = memory_limit();
  return Error::fault(
      ExitCode::device, "memory",
      "allocation failed (" + std::to_string(limit.bytes >> 20) + " MiB: " + limit.source + ")",
      (lower.empty() ? "" : "lower " + lower + ", or ") +
          std::string("allow the program more memory (ulimit -v, or the container's)"));
}

}  // namespace bamtrain
