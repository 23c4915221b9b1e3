#pragma once
// Starts mpi_checks (mpi_checks.cpp) under mpirun. Builds with MPI define the paths BAMTRAIN_MPIRUN
// and BAMTRAIN_MPI_CHECKS.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "catch.h"

namespace bamtrain::testing {

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

inline Outcome shell(const std::string& command) {
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

/// Runs `mpirun OPTIONS -np processes mpi_checks mode processes`. Allows more processes
/// than cores, and root. Shared memory avoids the kernel calls that containers forbid. Open MPI 4
/// and 5 read different variables, so both are set. A deadlock is killed after five minutes, with
/// exit code 124.
inline Outcome mpirun(int processes, const std::string& mode, const std::string& options = "") {
  const std::string n = std::to_string(processes);
  return shell(
      "timeout -k 5 300 env OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive"
      " OMPI_MCA_mpi_yield_when_idle=1"
      " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      " PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      " OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma,xpmem"
      " '" BAMTRAIN_MPIRUN "' --map-by :OVERSUBSCRIBE --bind-to none " +
      options + " -np " + n + " '" BAMTRAIN_MPI_CHECKS "' " + mode + " " + n);
}

}  // namespace bamtrain::testing
