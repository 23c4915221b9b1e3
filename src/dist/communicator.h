#pragma once
// Communication between the processes of one run.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/peer_link.h"
#include "dist/watchdog.h"

namespace bamtrain {

/// The processes of a run, numbered 0 to size() - 1. sum, any, broadcast and barrier are
/// collective: all ranks call them in the same order with the same sizes, from the thread that made
/// the communicator. Failures throw Error (ExitCode::distributed) with the library's own text.
///
/// An Error on one rank leaves the others waiting for it. So main keeps the communicator alive
/// around its handler, prints the error and calls abort(). A communicator destroyed by an unwinding
/// exception does that itself.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Index of this process among those on its machine, from 0.
  virtual int local_rank() const = 0;
  /// The lowest rank on its node.
  virtual int first_rank_of_node() const = 0;

  /// Replaces data (n) by its sum over all ranks. The order of the additions is MPI's: REQUIRES
  /// sums that are exact in every order, of integers or where one rank alone has a number.
  virtual void sum(double* data, int64_t n) = 0;

  /// Messages between ranks in host memory. Null with a single process.
  virtual PeerLink* link() = 0;

  /// Whether `value` is true on any rank.
  virtual bool any(bool value) = 0;

  /// Copies `bytes` bytes from rank `root` to all others.
  virtual void broadcast(void* data, int64_t bytes, int root) = 0;

  virtual void barrier() = 0;

  /// What ends this process where a wait for others takes too long; null with a single process.
  virtual Watchdog* watchdog() = 0;
  /// Sets its timeout, in seconds; 0: none. Throws Error (ExitCode::distributed) if there is one
  /// but this process has no connection to rank 0.
  virtual void set_peer_timeout(double seconds) = 0;

  /// Ends the processes of all ranks with `exit_code`, including this one, whatever they are
  /// waiting for. With a single process there is nobody to release, and it returns.
  virtual void abort(int exit_code) = 0;
};

/// Uses MPI if the environment shows that a launcher such as mpirun started this process (see
/// dist/launch.h), otherwise a single process. Throws Error (ExitCode::distributed) if a launcher
/// started several processes that cannot reach each other: this binary was built without MPI, or
/// with another MPI than the launcher's. They would be copies of one run writing the same files.
/// peer_timeout: see Communicator::set_peer_timeout.
/// REQUIRES: at most one call per process, since MPI starts only once.
std::unique_ptr<Communicator> make_communicator(double peer_timeout = Watchdog::kDefaultTimeout);

/// Name and version of the linked MPI library, "Open MPI v4.1.4"; empty in a build without MPI.
/// Does not start MPI.
std::string mpi_library();

/// Names the first node whose ranks do not follow one another, by its ranks: "0, 2, 4"; empty:
/// there is none. first_ranks: Communicator::first_rank_of_node() of each rank.
std::string scattered_ranks(std::span<const int> first_ranks);

/// Throws Error (ExitCode::distributed) unless there are 1 to `groups` processes.
void check_process_count(int size, int64_t groups);

}  // namespace bamtrain
