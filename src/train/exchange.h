#pragma once
// What processes exchange while they compute: sums of gradients beside the backward pass, updated
// weights beside the forward pass.

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/flat_range.h"
#include "core/group_reduction.h"

namespace bamtrain {

/// Messages between GPUs run beside the computation; in host memory a thread of its own makes the
/// calls.
class Exchange {
 public:
  struct Mode {
    bool on_host;
    bool beside;   // false: calls do everything
    bool gathers;  // all processes get the sums, and not only the one that owns an element
  };
  /// `messages`: as for GroupReduction::reduce. All arguments outlive this object.
  Exchange(GroupReduction& reduction, PeerLink& link, std::span<const Tensor> sums,
           const Tensor& messages, Mode mode);
  /// Gives up what was started and not finished.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // From the first call to finish(), the process communicates in no other way, and changes nothing
  // that is on its way. Spans are of what outlives that.

  /// Starts the reduction of these ranges of the sums (GroupReduction::reduce).
  void reduce(std::span<const FlatRange> ranges);
  /// Starts GroupReduction::gather of these tensors. At most PeerLink::kMarks, before any reduce().
  void gather(std::span<const Tensor> tensors);
  /// Orders all later work after the first n calls of gather(). Throws what failed.
  void wait(size_t n);
  /// Orders all later work after everything that was started. Throws what failed.
  void finish();

 private:
  struct Call {
    bool gathers;
    std::span<const FlatRange> reduced;
    std::span<const Tensor> gathered;
  };
  void start(const Call& call);
  void run(size_t number, const Call& call);
  void serve();
  void wait_for_thread(size_t calls);

  GroupReduction& reduction_;
  PeerLink& link_;
  const std::span<const Tensor> sums_;
  const Tensor& messages_;
  const bool gathers_;
  std::vector<Tensor> reduced_;  // ranges of the sum

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;  // since finish(), of which the first done_ are done
  size_t done_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // none: calls run at once
};

}  // namespace bamtrain
