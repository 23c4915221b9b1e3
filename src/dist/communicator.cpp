#include "dist/communicator.h"

#include <bit>
#include <string>

#include "core/error.h"
#include "dist/backends.h"

namespace bamtrain {

std::unique_ptr<Communicator> make_communicator() {
  const Launch launch = detect_launch();
#ifdef BAMTRAIN_MPI
  if (launch.parallel()) return make_mpi_communicator(launch);
#else
  require_single_process(launch);
#endif
  return make_single_communicator();
}

#ifndef BAMTRAIN_MPI
std::string mpi_library() { return ""; }
#endif

int64_t communicator_bytes(int processes) {
  return processes > 1 ? PeerLink::kSlots * kDefaultPieceBytes : 0;
}

void check_process_count(int size, int64_t groups) {
  require(groups >= 1 && std::has_single_bit(static_cast<uint64_t>(groups)),
          "a number of groups that is a power of two");
  if (size >= 1 && size <= groups && groups % size == 0) return;
  std::string allowed = "1";
  for (int64_t p = 2; p <= groups; p *= 2) {
    allowed += (p == groups ? " or " : ", ") + std::to_string(p);
  }
  throw Error(ExitCode::distributed, "number of processes",
              allowed + ", which divide train.lanes = " + std::to_string(groups),
              std::to_string(size),
              "start one of these numbers with mpirun -np, or change train.lanes");
}

}  // namespace bamtrain
