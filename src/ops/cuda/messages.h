#pragma once
// Messages between the devices of a run's processes. messages.cpp: NCCL; tests/engine/messages.cpp:
// MPI, where a device's memory is the host's.

#include <cstdint>
#include <memory>

#include "core/peer_link.h"
#include "kernels/launch.h"

namespace bamtrain::cuda {

class Messages {
 public:
  /// Collective over all processes, each with a device of its own. `stream` is that of the work
  /// whose results are sent. Error (ExitCode::distributed) where the library is absent or refuses.
  Messages(const Peers& peers, device::Stream stream);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// As PeerLink's, in device memory. Messages are sent behind the work that is on the stream, and
  /// beside the work that comes later.
  void start(int slot, int peer, const void* out, int64_t out_bytes, void* in, int64_t in_bytes);
  /// The stream waits for the slot's messages.
  void finish(int slot);
  void all_reduce(float* data, int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
