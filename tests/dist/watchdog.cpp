// Processes that are lost, stopped or late, under a launcher that ends the others and under one
// that does not. Only in builds with MPI.

#include <string>

#include "mpirun.h"

namespace bamtrain::testing {
namespace {

/// Open MPI's mpirun then lets the others go on where one ends. Its exit code says nothing.
constexpr const char* kAlone = "--enable-recovery";
constexpr const char* kRemedy = "; run the same command again: it resumes from the last checkpoint";

/// What three processes say where this happens to one of them.
std::string said(const std::string& mode, const std::string& options) {
  const Outcome o = mpirun(3, mode, options);
  INFO(mode << " " << options << "\n" << o.output);
  // One that is stopped may do so once the launcher lets it go on, to end it.
  CHECK((mode.starts_with("stopped") || !o.says("passed the barrier")));
  CHECK(o.exit_code != 124);  // it would have waited for ever
  if (options.empty()) CHECK(o.exit_code == (mode[0] == 'k' ? 137 : mode[0] == 'f' ? 7 : 8));
  return o.output;
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a process that others wait for too long ends all, and is named") {
  for (const char* options : {"", kAlone}) {
    const std::string late = said("late_1", options);
    INFO(late);
    CHECK(contains(late, "MPI_Barrier of training, step 41, waits for other processes for "));
    CHECK(contains(late, ", over train.peer_timeout = 0.5; rank 1 (process "));
    CHECK(contains(late, " is in training, step 41" + std::string(kRemedy)));
    CHECK(contains(said("late_0", options), "; rank 0 is in training, step 41"));
    CHECK(contains(said("silent_2", options), "MPI_Wait of training, step 41, waits for rank 2"));
  }
}

TEST_CASE("a process that is stopped ends all, and is named") {
  for (const int rank : {0, 1}) {
    const std::string stopped = said("stopped_" + std::to_string(rank), "");
    INFO(stopped);
    CHECK(contains(stopped, "rank " + std::to_string(rank) + " (process "));
    CHECK(contains(stopped, "gives no sign of life for "));
  }
}

TEST_CASE(
    "a process that is killed ends all, and is named where the launcher lets the others go on") {
  for (const int rank : {0, 2}) {
    const std::string mode = "killed_" + std::to_string(rank);
    said(mode, "");
    const std::string killed = said(mode, kAlone);
    INFO(killed);
    CHECK(contains(killed, "rank " + std::to_string(rank) + " (process "));
    CHECK(contains(killed, " ended without a word, last seen in "));
  }
}

TEST_CASE("a process that fails ends all with its message alone") {
  for (const char* options : {"", kAlone}) {
    const std::string failed = said("failed_1", options);
    INFO(failed);
    CHECK(contains(failed, "found not-a-number"));
    CHECK_FALSE(contains(failed, "ended without a word"));
    CHECK_FALSE(contains(failed, "train.peer_timeout"));
  }
}

TEST_CASE("long work of one process is no reason to end where its phase allows it") {
  const Outcome o = mpirun(3, "long_waits");
  INFO(o.output);
  CHECK(o.exit_code == 0);
  CHECK(o.times(": all checks passed") == 3);
}

}  // namespace
}  // namespace bamtrain::testing
