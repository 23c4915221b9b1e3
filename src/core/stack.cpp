#include "core/stack.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/error.h"

namespace bamtrain {

void require_stack() {
  constexpr rlim_t kWanted = rlim_t{8} << 20, kLeast = rlim_t{256} << 10;
  rlimit limit;
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(kWanted, limit.rlim_max);
  ::setrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < kLeast) {
    char text[200];
    const int n = std::snprintf(text, sizeof text,
                                "%s: stack: expected at least %lu KiB, found %lu KiB (hard limit); "
                                "raise it: ulimit -s 8192\n",
                                program_invocation_short_name, kLeast >> 10, limit.rlim_cur >> 10);
    // A message that cannot be written is lost: there is no other channel.
    [[maybe_unused]] const ssize_t written =
        ::write(STDERR_FILENO, text, std::min(static_cast<size_t>(n), sizeof text - 1));
    ::_exit(static_cast<int>(ExitCode::device));
  }
  pthread_attr_t threads;
  ::pthread_attr_init(&threads);
  ::pthread_attr_setstacksize(&threads, limit.rlim_cur);
  ::pthread_setattr_default_np(&threads);
  ::pthread_attr_destroy(&threads);
}

}  // namespace bamtrain
