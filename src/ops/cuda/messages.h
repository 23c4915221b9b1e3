#pragma once
// Messages between the devices of a run's processes. messages.cpp: NCCL; tests/engine/messages.cpp:
// MPI, with device memory in host memory.

#include <cstdint>
#include <memory>
#include <span>

#include "core/peer_link.h"
#include "kernels/launch.h"

namespace bamtrain::cuda {

class Messages {
 public:
  /// Collective over all processes, each with its own device. The work on `stream` produces the
  /// data that is sent. Throws Error (ExitCode::distributed) if the library is missing or refuses.
  Messages(const Peers& peers, device::Stream stream);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// As in PeerLink, in device memory. A message is sent after the work already on the stream, and
  /// overlaps with later work.
  void start(int slot, std::span<const PeerMessage> messages);
  void finish(int slot);
  /// The stream of messages, for what is done with them.
  device::Stream stream() const;
  /// The stream of the constructor waits for that of messages.
  void join();
  void mark(int n);
  void join(int n);
  void all_reduce(float* data, int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
