// Several processes together: mpi_checks (mpi_checks.cpp) under mpirun. Only in builds with MPI.

#include <string>

#include "mpirun.h"

namespace bamtrain::testing {
namespace {

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

TEST_CASE("without a connection to rank 0, a limit of waits is refused, and none is kept") {
  for (int processes : {2, 3}) require_success(mpirun(processes, "unwatched"), processes);
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
}  // namespace bamtrain::testing
