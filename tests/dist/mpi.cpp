// Runs mpi_checks (mpi_checks.cpp) under mpirun, to test several processes together. Only in builds
// with MPI, which define the paths BAMTRAIN_MPIRUN and BAMTRAIN_MPI_CHECKS.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "catch.h"

namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;

  bool says(const std::string& part) const { return output.find(part) != std::string::npos; }
  int times(const std::string& part) const {
    int n = 0;
    for (size_t at = output.find(part); at != std::string::npos; at = output.find(part, at + 1))
      ++n;
    return n;
  }
};

Outcome shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> block;
  for (size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) {
    outcome.output.append(block.data(), n);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

/// Runs `mpirun -np processes mpi_checks mode processes`. Allows more processes
/// than cores, and root. Shared memory avoids the kernel calls that containers forbid. Open MPI 4
/// and 5 read different variables, so both are set. A deadlock is killed after five minutes, with
/// exit code 124.
Outcome mpirun(int processes, const std::string& mode) {
  const std::string n = std::to_string(processes);
  return shell(
      "timeout -k 5 300 env OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive"
      " OMPI_MCA_mpi_yield_when_idle=1"
      " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      " PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      " OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma,xpmem"
      " '" BAMTRAIN_MPIRUN "' --map-by :OVERSUBSCRIBE --bind-to none -np " +
      n + " '" BAMTRAIN_MPI_CHECKS "' " + mode + " " + n);
}

void require_success(const Outcome& outcome, int processes) {
  INFO(processes << " processes\n" << outcome.output);
  CHECK(outcome.exit_code == 0);
  for (int rank = 0; rank < processes; ++rank) {
    CHECK(outcome.says("rank " + std::to_string(rank) + ": all checks passed"));
  }
}

TEST_CASE("groups spread over any number of processes give the bits of the tree") {
  for (int processes : {2, 3, 4, 5, 6, 8, 12}) {
    require_success(mpirun(processes, "groups"), processes);
  }
}

TEST_CASE("flags and bytes reach every process") {
  for (int processes : {2, 3, 8}) {
    require_success(mpirun(processes, "messages"), processes);
  }
}

TEST_CASE("work of one process or of all is done there and nowhere else") {
  for (int processes : {2, 4}) require_success(mpirun(processes, "first"), processes);
}

TEST_CASE("names that differ between processes are told with their first ranks") {
  for (int processes : {4, 8}) require_success(mpirun(processes, "names"), processes);
}

TEST_CASE("an error that all processes meet is thrown on the first alone") {
  const Outcome outcome = mpirun(4, "all_alike");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.times("expected a file, found none") == 1);
  CHECK(outcome.says("rank 0: shard: "));
  CHECK_FALSE(outcome.says("passed by"));
}

TEST_CASE("an error that one process meets is thrown there alone") {
  const Outcome outcome = mpirun(4, "rank_2_alone");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.times("expected a file, found none") == 1);
  CHECK(outcome.says("rank 2: shard: "));
  CHECK_FALSE(outcome.says("passed by"));
}

TEST_CASE("of errors that differ, or that some processes do not meet, the first process tells") {
  const Outcome different = mpirun(4, "all_differently");
  INFO(different.output);
  CHECK(different.exit_code == 4);
  for (const char* rank : {"0", "1", "2", "3"}) {
    CHECK(different.says(std::string("rank ") + rank + ": shard of " + rank + ": "));
  }
  CHECK(different.times("expected a file, found none") == 4);
  CHECK_FALSE(different.says("passed by"));
  const Outcome some = mpirun(4, "some_alike");
  INFO(some.output);
  CHECK(some.exit_code == 4);
  CHECK(some.times("expected a file, found none") == 1);
  CHECK(some.says("rank 0: shard"));
  CHECK_FALSE(some.says("passed by"));
}

TEST_CASE("an error on one process ends all of them with its exit code") {
  const Outcome outcome = mpirun(4, "abort");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 7);
  CHECK(outcome.says("found not-a-number"));
  CHECK_FALSE(outcome.says("passed the barrier"));
}

TEST_CASE("a communicator destroyed by an unwinding error ends all processes") {
  const Outcome outcome = mpirun(2, "unwind");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.says("rank 1 failed and stops the run"));
  CHECK_FALSE(outcome.says("passed the barrier"));
}

TEST_CASE("a failing MPI call is an error with the library's text") {
  const Outcome outcome = mpirun(2, "mismatch");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 8);
  CHECK(outcome.says("MPI_ERR_TRUNCATE"));
}

TEST_CASE("more processes than groups are refused") {
  const Outcome outcome = mpirun(3, "count");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 8);
  CHECK(outcome.says("expected 1 to train.lanes = 2, found 3"));
}

TEST_CASE("an MPI that finds fewer processes than were launched is refused") {
  const Outcome outcome = shell("OMPI_COMM_WORLD_SIZE=4 '" BAMTRAIN_MPI_CHECKS "' groups 4");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 8);
  CHECK(outcome.says("expected 4 processes connected by MPI, found 1"));
}

}  // namespace
