#pragma once
// Prefetches windows into memory before a step needs them.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bamtrain {

/// Holds the most recently hinted ranges of windows. A thread of its own reads them, oldest hint
/// first, so that the disk is waited for there. Thread-safe.
///
/// It reports no errors: a window that the thread could not read stays missing. The caller then
/// reads it itself and gets the error where it can be reported.
class ReadAhead {
 public:
  /// The current step and two more.
  static constexpr int64_t kRanges = 3;

  /// Called after each window of a range with the number of windows read; false: stop reading.
  using Arrived = std::function<bool(int64_t windows)>;
  /// Reads windows first, ..., first + count - 1 into `out` (count, row), in this order. Called
  /// only by the thread. May throw.
  using Read =
      std::function<void(int64_t first, int64_t count, int32_t* out, const Arrived& arrived)>;

  /// `row`: tokens per window. Starts no thread.
  ReadAhead(int64_t row, Read read);
  /// Waits for the window being read.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Starts the thread and allocates memory for ranges of `count` windows: hints of at most that
  /// many allocate nothing.
  void reserve(int64_t count);

  /// Announces that windows [first, first + count) will be needed. Returns at once. Does nothing if
  /// a range already covers them; otherwise they replace the oldest range.
  void hint(int64_t first, int64_t count);

  /// Copies the windows into `out` (count, row), waiting for those still to come. Returns false if
  /// no range covers them, or if they could not be read.
  bool take(int64_t first, int64_t count, int32_t* out);

 private:
  struct Range {
    int64_t first = 0, count = 0;
    int64_t number = 0;   // of the hint, from 1; 0: unused
    int64_t arrived = 0;  // windows read so far
    bool queued = false;  // not started
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
