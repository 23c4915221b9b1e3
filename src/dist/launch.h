#pragma once
// How this process was started, read from the environment before any MPI call.

#include <string>

namespace bamtrain {

/// What the launcher's variables say. mpirun of Open MPI sets OMPI_COMM_WORLD_SIZE, that of MPICH
/// and Intel MPI sets PMI_SIZE; srun --mpi=pmix sets PMIX_RANK and SLURM_STEP_NUM_TASKS.
struct Launch {
  static constexpr int kUnknown = 0;

  std::string variable;      // what gave it away; empty: started directly
  int processes = kUnknown;  // as announced; some launchers do not say

  bool parallel() const { return !variable.empty(); }
};

/// Error (ExitCode::distributed) where a launcher's variable does not hold a count.
Launch detect_launch();

/// Takes the launcher's variables out of the environment, for a program that is started alone: it
/// would look for the processes that they announce.
void leave_launch();

/// Error (ExitCode::distributed) unless `launch` announces one process: for binaries without MPI.
void require_single_process(const Launch& launch);

/// Error (ExitCode::distributed) unless the `connected` processes are all that were announced.
void require_connected(const Launch& launch, int connected);

}  // namespace bamtrain
