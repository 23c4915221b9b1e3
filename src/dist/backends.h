#pragma once
// The communicators that make_communicator chooses from.

#include <cstdint>
#include <memory>

#include "dist/communicator.h"
#include "dist/launch.h"

namespace bamtrain {

/// A single process: sums, broadcasts and barriers do nothing.
std::unique_ptr<Communicator> make_single_communicator();

/// Messages are long because processes that share cores pay for every hand-over between them.
inline constexpr int64_t kDefaultPieceBytes = int64_t{16} << 20;

/// Connects the processes of MPI_COMM_WORLD: starts MPI, and finalizes it when destroyed. Messages
/// have at most `piece_bytes` bytes; PeerLink::kSlots of them are kept in scratch. Exists only in
/// builds with MPI. Throws Error (ExitCode::distributed) if fewer processes are connected than
/// `launch` announces. REQUIRES: piece_bytes is a positive multiple of 512 below 2^31.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch,
                                                    int64_t piece_bytes = kDefaultPieceBytes);

}  // namespace bamtrain
