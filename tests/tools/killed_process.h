#pragma once
// Kills a process between two file operations.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "catch.h"
#include "core/durable_file.h"

namespace bamtrain::testing {

/// Whether a process that does `work` is killed before its file operation number `n`, counted from
/// 0; otherwise it must succeed. `exchange`: the errno of file systems that cannot exchange two
/// names. `unnamed`: that of file systems without unnamed files.
template <class F>
bool dies_before(int n, F&& work, int exchange = 0, int unnamed = 0) {
  static int left, of_exchange, of_unnamed;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    left = n;
    of_exchange = exchange;
    of_unnamed = unnamed;
    set_file_fault([](FileOp op, const std::string&, const std::string&) {
      if (left-- == 0) ::kill(::getpid(), SIGKILL);
      return op == FileOp::exchange ? of_exchange : op == FileOp::create_unnamed ? of_unnamed : 0;
    });
    try {
      work();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

}  // namespace bamtrain::testing
