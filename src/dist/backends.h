#pragma once
// The communicators behind make_communicator.

#include <memory>

#include "dist/communicator.h"
#include "dist/launch.h"

namespace bamtrain {

/// One process: sums, broadcasts and barriers have nothing to do.
std::unique_ptr<Communicator> make_single_communicator();

/// The processes of MPI_COMM_WORLD; starts MPI, and ends it when destroyed. Exists only in builds
/// with MPI. Error (ExitCode::distributed) where fewer are connected than `launch` announces.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch);

}  // namespace bamtrain
