// Messages between devices, for the engine: device memory is host memory, and messages go through
// MPI. The program must have initialised MPI.

#include "ops/cuda/messages.h"

#include <vector>

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
  device::Stream stream;
  std::vector<MPI_Request> requests[PeerLink::kSlots];
};

Messages::Messages(const Peers& peers, device::Stream stream)
    : state_(std::make_unique<State>(State{stream, {}})) {
  peers.run_on_all_ranks([] {});
  int number = peers.rank == 0 ? 42 : 0;  // sent the way NCCL's id is
  peers.broadcast(&number, sizeof number, 0);
  require(number == 42, "what rank 0 broadcasts");
}
Messages::~Messages() = default;

void Messages::start(int slot, std::span<const PeerMessage> messages) {
  auto& requests = state_->requests[slot];
  require(requests.empty(), "a slot that is not under way");
  for (const auto& [peer, out, in] : messages) {
    if (in.size() > 0) {
      check(MPI_Irecv(in.data, static_cast<int>(in.bytes()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                      &requests.emplace_back()));
    }
    if (out.size() > 0) {
      check(MPI_Isend(out.data, static_cast<int>(out.bytes()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                      &requests.emplace_back()));
    }
  }
}

void Messages::finish(int slot) {
  auto& requests = state_->requests[slot];
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  requests.clear();
}

device::Stream Messages::stream() const { return state_->stream; }
void Messages::join() {}
void Messages::mark(int) {}
void Messages::join(int) {}

void Messages::all_reduce(float* data, int64_t n) {
  check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

#else

struct Messages::State {};
Messages::Messages(const Peers&, device::Stream) {
  require(false, "one process in a build without MPI");
}
Messages::~Messages() = default;
void Messages::start(int, std::span<const PeerMessage>) {}
void Messages::finish(int) {}
device::Stream Messages::stream() const { return {}; }
void Messages::join() {}
void Messages::mark(int) {}
void Messages::join(int) {}
void Messages::all_reduce(float*, int64_t) {}

#endif

}  // namespace bamtrain::cuda
