// Messages in a build without NCCL: not supported.

#include "core/error.h"
#include "ops/cuda/messages.h"

namespace bamtrain::cuda {

struct Messages::State {};

Messages::Messages(const Peers& peers, device::Stream) {
  peers.run_on_all_ranks([&peers] {
    throw Error(ExitCode::distributed, "NCCL", "a build with NCCL for several processes with GPUs",
                "a build without it, and " + std::to_string(peers.size) + " processes",
                "build where nccl.h is found (-Dnccl=enabled), or start one process");
  });
}
Messages::~Messages() = default;
void Messages::start(int, std::span<const PeerMessage>) {}
void Messages::finish(int) {}
device::Stream Messages::stream() const { return {}; }
void Messages::join() {}
void Messages::mark(int) {}
void Messages::join(int) {}
void Messages::all_reduce(float*, int64_t) {}

}  // namespace bamtrain::cuda
