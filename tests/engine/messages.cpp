// Messages between devices, for the engine: device memory is host memory, and messages go through
// MPI. The program must have initialised MPI.

#include "ops/cuda/messages.h"

#include "core/error.h"

#ifdef BAMTRAIN_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace bamtrain::cuda {

#ifdef BAMTRAIN_MPI

namespace {
constexpr int kTag = 2;
void check(int status) { require(status == MPI_SUCCESS, "an MPI call that succeeds"); }
}  // namespace

struct Messages::State {
  MPI_Request requests[PeerLink::kSlots][2];
};

Messages::Messages(const Peers& peers, device::Stream) : state_(std::make_unique<State>()) {
  for (auto& slot : state_->requests) slot[0] = slot[1] = MPI_REQUEST_NULL;
  peers.run_on_all_ranks([] {});
  int number = peers.rank == 0 ? 42 : 0;  // sent the way NCCL's id is
  peers.broadcast(&number, sizeof number, 0);
  require(number == 42, "what rank 0 broadcasts");
}
Messages::~Messages() = default;

void Messages::start(int slot, int peer, const void* out, int64_t out_bytes, void* in,
                     int64_t in_bytes) {
  auto& requests = state_->requests[slot];
  for (MPI_Request r : requests) require(r == MPI_REQUEST_NULL, "a slot that is not under way");
  if (in_bytes > 0) {
    check(MPI_Irecv(in, static_cast<int>(in_bytes), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                    &requests[0]));
  }
  if (out_bytes > 0) {
    check(MPI_Isend(out, static_cast<int>(out_bytes), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                    &requests[1]));
  }
}

void Messages::finish(int slot) {
  check(MPI_Waitall(2, state_->requests[slot], MPI_STATUSES_IGNORE));
}

void Messages::all_reduce(float* data, int64_t n) {
  check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

#else

struct Messages::State {};
Messages::Messages(const Peers&, device::Stream) {
  require(false, "one process in a build without MPI");
}
Messages::~Messages() = default;
void Messages::start(int, int, const void*, int64_t, void*, int64_t) {}
void Messages::finish(int) {}
void Messages::all_reduce(float*, int64_t) {}

#endif

}  // namespace bamtrain::cuda
