#include "core/thread_limit.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "catch.h"

using namespace bamtrain;

namespace {

/// What limit_of_threads returns in a child after `before`; "" if the child fails.
template <class F>
std::string said_in_a_child(F&& before) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    before();
    const std::string text = limit_of_threads();
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                            : 1);
  }
  ::close(ends[1]);
  std::string text(100, '\0');
  const ssize_t n = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  text.resize(status == 0 && n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace

TEST_CASE("a thread that has no room for its stack is refused by the limit of memory") {
  CHECK(said_in_a_child([] {}) == "processes (ulimit -u, or the container's)");
  CHECK(said_in_a_child([] {
          rlimit limit = {};
          ::getrlimit(RLIMIT_AS, &limit);
          limit.rlim_cur = 1 << 20;  // less than is already mapped: no stack fits
          ::setrlimit(RLIMIT_AS, &limit);
        }) == "memory (ulimit -v)");
  // A limit far above the use is not the cause.
  CHECK(said_in_a_child([] {
          rlimit limit = {};
          ::getrlimit(RLIMIT_AS, &limit);
          if (limit.rlim_max != RLIM_INFINITY) return;
          limit.rlim_cur = rlim_t{1} << 46;
          ::setrlimit(RLIMIT_AS, &limit);
        }) == "processes (ulimit -u, or the container's)");
}
