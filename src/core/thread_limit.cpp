#include "core/thread_limit.h"

#include <pthread.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>

namespace bamtrain {

namespace {

/// Peak virtual memory in bytes; 0 if the system does not report it.
uint64_t most_virtual_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    uint64_t kibibytes = 0;
    if (name == "VmPeak:" && status >> kibibytes) return kibibytes * 1024;
    std::getline(status, name);
  }
  return 0;
}

uint64_t stack_of_a_thread() {
  pthread_attr_t attributes;
  size_t bytes = 0, guard = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return 0;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  ::pthread_attr_getguardsize(&attributes, &guard);
  ::pthread_attr_destroy(&attributes);
  return bytes + guard;
}

}  // namespace

std::string limit_of_threads() {
  rlimit memory = {};
  ::getrlimit(RLIMIT_AS, &memory);
  const bool full = memory.rlim_cur != RLIM_INFINITY &&
                    most_virtual_memory() + stack_of_a_thread() > memory.rlim_cur;
  return full ? "memory (ulimit -v)" : "processes (ulimit -u, or the container's)";
}

}  // namespace bamtrain
