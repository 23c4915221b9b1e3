#pragma once
// Which limit a thread fails by.

#include <string>

namespace bamtrain {

/// Of a process that the system has just refused a thread, for a remedy: "memory (ulimit -v)" where
/// a thread's stack beside the most memory that it had is past that limit, else "processes (ulimit
/// -u, or the container's)".
std::string limit_of_threads();

}  // namespace bamtrain
