#pragma once
// The communicators behind make_communicator.

#include <cstdint>
#include <memory>

#include "dist/communicator.h"
#include "dist/launch.h"

namespace bamtrain {

/// One process: sums, broadcasts and barriers have nothing to do.
std::unique_ptr<Communicator> make_single_communicator();

/// Long messages: processes that share cores pay for every hand-over from one to the next.
inline constexpr int64_t kDefaultPieceBytes = int64_t{16} << 20;

/// The processes of MPI_COMM_WORLD; starts MPI, and ends it when destroyed. Messages of at most
/// `piece_bytes` bytes; PeerLink::kSlots of them are kept in scratch. Exists only in builds with
/// MPI. Error (ExitCode::distributed) where fewer processes are connected than `launch` announces.
/// REQUIRES: piece_bytes is a positive multiple of 512 below 2^31.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch,
                                                    int64_t piece_bytes = kDefaultPieceBytes);

}  // namespace bamtrain
