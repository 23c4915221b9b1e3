#include "dist/communicator.h"

#include <fmt/format.h>

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

void check_process_count(int size, int64_t groups) {
  if (size >= 1 && size <= groups) return;
  throw Error(ExitCode::distributed, "number of processes",
              groups == 1 ? "1, as train.lanes" : fmt::format("1 to train.lanes = {}", groups),
              std::to_string(size), "start fewer with mpirun -np, or raise train.lanes");
}

}  // namespace bamtrain
