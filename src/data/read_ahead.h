#pragma once
// Windows that are in memory before a step asks for them.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bamtrain {

/// The ranges of windows that were named last, read by a thread of its own, the one that was named
/// first before the others, so that the disk is waited for there. Any number of threads may call.
///
/// It is no source of errors: a window that the thread could not read is not there, and who needs
/// it reads it for itself and meets the error where it can be reported.
class ReadAhead {
 public:
  /// Of the step at hand and of two more.
  static constexpr int64_t kRanges = 3;

  /// Called after each window of a range with how many of them are in place; false: read no more.
  using Arrived = std::function<bool(int64_t windows)>;
  /// Windows first, ..., first + count - 1 into `out` (count, row), in this order. Called by the
  /// thread alone. May throw.
  using Read =
      std::function<void(int64_t first, int64_t count, int32_t* out, const Arrived& arrived)>;

  /// `row`: tokens of a window. Starts no thread.
  ReadAhead(int64_t row, Read read);
  /// Waits for the window that is being read.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Starts the thread and takes memory for ranges of `count` windows: from here on hints of no
  /// more take none.
  void reserve(int64_t count);

  /// Windows [first, first + count) will be asked for. Returns at once. Nothing where they are in a
  /// range already; else they take the place of the range that was named first.
  void hint(int64_t first, int64_t count);

  /// The windows into `out` (count, row), waiting for those that are still to come; false where
  /// they are in no range, or could not be read.
  bool take(int64_t first, int64_t count, int32_t* out);

 private:
  struct Range {
    int64_t first = 0, count = 0;
    int64_t number = 0;   // of the hint, from 1; 0: none yet
    int64_t arrived = 0;  // windows that are in place
    bool queued = false;  // not begun
    bool ended = false;   // no more windows will arrive
    std::vector<int32_t> rows;
  };

  const Range* holder(int64_t first, int64_t count) const;
  void start();
  void run();
  void fill(Range* range, std::unique_lock<std::mutex>* lock);

  const int64_t row_;
  const Read read_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Range, kRanges> ranges_;
  int64_t hints_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace bamtrain
