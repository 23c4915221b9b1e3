#pragma once
// How this process was started, read from the environment before any MPI call.

#include <string>

namespace bamtrain {

/// What the launcher's variables say. Open MPI's mpirun sets OMPI_COMM_WORLD_SIZE, that of MPICH
/// and Intel MPI sets PMI_SIZE; srun --mpi=pmix sets PMIX_RANK and SLURM_STEP_NUM_TASKS.
struct Launch {
  static constexpr int kUnknown = 0;

  std::string variable;      // the variable that was found; empty: started directly
  int processes = kUnknown;  // as announced; some launchers do not say

  bool parallel() const { return !variable.empty(); }
};

/// Throws Error (ExitCode::distributed) if a launcher's variable does not hold a count.
Launch detect_launch();

/// Removes the launcher's variables from the environment, for a program that is started alone. With
/// them it would look for the processes that they announce.
void leave_launch();

/// Throws Error (ExitCode::distributed) unless `launch` announces one process. For builds without
/// MPI.
void require_single_process(const Launch& launch);

/// Throws Error (ExitCode::distributed) unless all announced processes are `connected`.
void require_connected(const Launch& launch, int connected);

}  // namespace bamtrain
