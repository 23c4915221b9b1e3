#include "dist/communicator.h"

#include <fmt/format.h>

#include <string>

#include "core/error.h"
#include "dist/backends.h"

namespace bamtrain {

std::unique_ptr<Communicator> make_communicator([[maybe_unused]] double peer_timeout) {
  const Launch launch = detect_launch();
#ifdef BAMTRAIN_MPI
  if (launch.parallel()) return make_mpi_communicator(launch, peer_timeout);
#else
  require_single_process(launch);
#endif
  return make_single_communicator();
}

#ifndef BAMTRAIN_MPI
std::string mpi_library() { return ""; }
#endif

std::string scattered_ranks(std::span<const int> first_ranks) {
  for (size_t first = 0; first < first_ranks.size(); ++first) {
    if (first_ranks[first] != static_cast<int>(first)) continue;
    std::string ranks;
    bool scattered = false;
    size_t last = first;
    for (size_t r = first; r < first_ranks.size(); ++r) {
      if (first_ranks[r] != first_ranks[first]) continue;
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
      scattered |= r > last + 1;
      last = r;
    }
    if (scattered) return ranks;
  }
  return "";
}

void check_process_count(int size, int64_t groups) {
  if (size >= 1 && size <= groups) return;
  throw Error(ExitCode::distributed, "number of processes",
              groups == 1 ? "1, as train.lanes" : fmt::format("1 to train.lanes = {}", groups),
              std::to_string(size), "start fewer with mpirun -np, or raise train.lanes");
}

}  // namespace bamtrain
