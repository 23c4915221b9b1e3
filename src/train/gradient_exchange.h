#pragma once
// Sums of gradients over the processes of a run, while the backward pass computes others.

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
class GradientExchange {
 public:
  struct Mode {
    bool on_host;
    bool beside;   // false: start() does everything
    bool gathers;  // all processes get the result, and not only the one that owns an element
  };
  /// `messages`: as for GroupReduction::reduce. All arguments outlive this object.
  GradientExchange(GroupReduction& reduction, PeerLink& link, std::span<const Tensor> sums,
                   const Tensor& messages, Mode mode);
  /// Gives up what was started and not finished.
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// Starts the reduction of these elements of the sums (GroupReduction::reduce). The process may
  /// change other elements, and communicates in no other way up to finish().
  void start(FlatRange range);
  /// Orders all later work after what was started. Throws what failed.
  void finish();

 private:
  void run(FlatRange range);
  void serve();

  GroupReduction& reduction_;
  PeerLink& link_;
  const std::span<const Tensor> sums_;
  const Tensor& messages_;
  const bool gathers_;
  std::vector<Tensor> parts_;  // of the sums

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FlatRange> started_;  // since finish(); the thread has done the first done_
  size_t done_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // none: start() runs
};

}  // namespace bamtrain
