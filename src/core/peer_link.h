#pragma once
// Connects the memory of a run's processes, for sums over all of them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace bamtrain {

/// The processes of a run, seen from one of them.
struct Peers {
  int rank = 0, size = 1;
  std::vector<int> partners;  // ranks that messages are exchanged with
  /// Copies `bytes` bytes from rank `root` to all others. Collective.
  std::function<void(void* data, int64_t bytes, int root)> broadcast;
  /// Runs `f`, which must not wait for other ranks. If it fails on any rank, no rank continues.
  /// Collective.
  std::function<void(const std::function<void()>& f)> run_on_all_ranks;
  /// `f` is called on another thread before this process ends because others do not answer. It
  /// makes the link's library give up. Null: nothing.
  std::function<void(std::function<void()> f)> before_end;
};

/// Sends `out` to `peer` and receives `in` from it. An empty tensor sends no message. Tensors are
/// contiguous.
struct PeerMessage {
  int peer = 0;
  Tensor out, in;
};

/// Messages between one process and the others, and additions, in memory that the link can access.
/// Everything happens in call order, possibly after the calls return. On a GPU it is queued after
/// the work that the process queued before, and beside what it queues later, up to join(). In host
/// memory it happens in the calls, and another thread may make them if no other one communicates
/// meanwhile.
class PeerLink {
 public:
  /// Batches of messages in flight at a time: some are transferred while another is added.
  static constexpr int kSlots = 4;
  static constexpr int kMarks = 8;

  PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  virtual ~PeerLink() = default;

  /// Starts messages. Every peer makes a call with the matching ones, in the same order and of
  /// equal sizes. Their tensors must stay valid and unmodified until finish(). REQUIRES: the slot
  /// is idle; messages below 2^31 bytes.
  virtual void start(int slot, std::span<const PeerMessage> messages) = 0;
  /// Orders later calls after the slot's messages are sent and received.
  virtual void finish(int slot) = 0;
  /// into += from, element by element.
  virtual void add(const Tensor& into, const Tensor& from) = 0;
  /// Orders all later work of the process after the calls so far.
  virtual void join() = 0;
  /// The same with the calls up to the last mark(n).
  virtual void mark(int n) = 0;
  virtual void join(int n) = 0;
  /// From now on finish() throws instead of waiting.
  virtual void give_up() {}
  /// Replaces data (n) f32 by its sum over all processes, using the library's own all-reduce.
  /// Results are bitwise identical on all processes, but differ between numbers of processes.
  virtual void all_reduce(const Tensor& data) = 0;
};

}  // namespace bamtrain
