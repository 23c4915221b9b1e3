#pragma once
// The communicators that make_communicator chooses from.

#include <memory>

#include "dist/communicator.h"
#include "dist/launch.h"

namespace bamtrain {

/// A single process: sums, broadcasts and barriers do nothing.
std::unique_ptr<Communicator> make_single_communicator();

/// Connects the processes of MPI_COMM_WORLD: starts MPI, and finalizes it when destroyed. Exists
/// only in builds with MPI. Throws Error (ExitCode::distributed) if fewer processes are connected
/// than `launch` announces. peer_timeout: see Communicator::set_peer_timeout.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch, double peer_timeout);

}  // namespace bamtrain
