#pragma once
// Which limit made the creation of a thread fail.

#include <string>

namespace bamtrain {

/// For a remedy, just after the system refused this process a thread. Returns "memory (ulimit -v)"
/// if the process's peak virtual memory plus a thread's stack exceeds that limit, else "processes
/// (ulimit -u, or the container's)".
std::string limit_of_threads();

}  // namespace bamtrain
