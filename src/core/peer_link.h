#pragma once
// What connects the memory of a run's processes, for sums over all of them.

#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace bamtrain {

/// The processes of a run, to one of them.
struct Peers {
  int rank = 0, size = 1;
  /// Copies `bytes` bytes of rank `root` to all others. Collective.
  std::function<void(void* data, int64_t bytes, int root)> broadcast;
  /// Runs `f`, which waits for nobody; where it fails for some, none goes on. Collective.
  std::function<void(const std::function<void()>& f)> run_on_all_ranks;
};

/// Messages between one process and the others, and additions, in memory that the link reaches.
/// Everything happens in the order of the calls, and may happen after they return: on a GPU it is
/// queued behind the work that the process has queued before.
class PeerLink {
 public:
  /// Pairs of messages under way at a time: one travels while another is added.
  static constexpr int kSlots = 2;

  PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  virtual ~PeerLink() = default;

  /// Starts to send `out` to `peer` and to receive `in` from it, which calls the same with as many
  /// bytes. No bytes, no message. Both tensors are contiguous and stay as they are until finish().
  /// REQUIRES: the slot is not under way; messages below 2^31 bytes.
  virtual void start(int slot, int peer, const Tensor& out, const Tensor& in) = 0;
  /// What follows finds the slot's messages sent and received.
  virtual void finish(int slot) = 0;
  /// into += from, element by element.
  virtual void add(const Tensor& into, const Tensor& from) = 0;
  /// data (n) f32 becomes its sum over all processes by the library's own means: every process gets
  /// the same bits, but other bits with other numbers of processes.
  virtual void all_reduce(const Tensor& data) = 0;
};

}  // namespace bamtrain
