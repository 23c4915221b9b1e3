#include "data/read_ahead.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kRow = 3;

/// The tokens of a window: three functions of its number.
void window(int64_t number, int32_t* out) {
  out[0] = static_cast<int32_t>(number);
  out[1] = static_cast<int32_t>(-number);
  out[2] = static_cast<int32_t>(7 * number);
}

Tokens expected_windows(int64_t first, int64_t count) {
  Tokens out(static_cast<size_t>(count * kRow));
  for (int64_t i = 0; i < count; ++i) window(first + i, out.data() + i * kRow);
  return out;
}

/// A disk whose windows arrive when the test lets them.
class Disk {
 public:
  ReadAhead::Read read() {
    return [this](int64_t first, int64_t count, int32_t* out, const ReadAhead::Arrived& arrived) {
      for (int64_t i = 0; i < count; ++i) {
        deliver(first + i, out + i * kRow);
        if (!arrived(i + 1)) return;
      }
    };
  }
  /// Lets the next `n` windows arrive.
  void let(int64_t n) {
    const std::lock_guard lock(mutex_);
    allowed_ += n;
    changed_.notify_all();
  }
  void fail_at(int64_t number) {
    const std::lock_guard lock(mutex_);
    bad_.insert(number);
  }
  /// Waits until the window is requested.
  void wait_for(int64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !asked_.empty() && asked_.back() == number; });
  }
  std::vector<int64_t> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void deliver(int64_t number, int32_t* out) {
    std::unique_lock lock(mutex_);
    asked_.push_back(number);
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ > 0; });
    --allowed_;
    if (bad_.contains(number)) throw std::runtime_error("a bad window");
    window(number, out);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t allowed_ = 0;
  std::vector<int64_t> asked_;
  std::set<int64_t> bad_;
};

/// The windows that `ahead` returns; empty if it does not have them.
Tokens taken(ReadAhead& ahead, int64_t first, int64_t count) {
  Tokens out(static_cast<size_t>(count * kRow), -1);
  return ahead.take(first, count, out.data()) ? out : Tokens{};
}

constexpr int64_t kAll = 1 << 20;

TEST_CASE(
    "ranges are read in the order of their hints, and a fourth takes the place of the first") {
  Disk disk;
  ReadAhead ahead(kRow, disk.read());
  ahead.reserve(2);
  CHECK(taken(ahead, 0, 1).empty());  // never hinted
  ahead.hint(10, 2);
  ahead.hint(30, 2);
  ahead.hint(20, 2);
  ahead.hint(31, 1);  // already requested
  disk.let(kAll);
  CHECK(taken(ahead, 20, 2) == expected_windows(20, 2));
  CHECK(disk.asked() == std::vector<int64_t>{10, 11, 30, 31, 20, 21});
  CHECK(taken(ahead, 31, 1) == expected_windows(31, 1));
  CHECK(taken(ahead, 10, 2) == expected_windows(10, 2));
  CHECK(taken(ahead, 11, 2).empty());  // spans two ranges
  ahead.hint(40, 1);
  CHECK(taken(ahead, 40, 1) == expected_windows(40, 1));
  CHECK(taken(ahead, 10, 2).empty());
  CHECK(taken(ahead, 30, 2) == expected_windows(30, 2));
}

TEST_CASE("windows are there as soon as they are read, those behind them are waited for") {
  Disk disk;
  ReadAhead ahead(kRow, disk.read());
  ahead.hint(5, 4);
  disk.let(2);
  disk.wait_for(7);
  CHECK(taken(ahead, 5, 2) == expected_windows(5, 2));
  Tokens late;
  std::thread reader([&] { late = taken(ahead, 6, 3); });
  disk.let(2);
  reader.join();
  CHECK(late == expected_windows(6, 3));
}

TEST_CASE("a window that cannot be read is not there, nor those behind it; others are") {
  Disk disk;
  ReadAhead ahead(kRow, disk.read());
  disk.fail_at(2);
  ahead.hint(0, 4);
  ahead.hint(4, 4);
  disk.let(kAll);
  CHECK(taken(ahead, 0, 4).empty());
  CHECK(taken(ahead, 2, 1).empty());
  CHECK(taken(ahead, 3, 1).empty());
  CHECK(taken(ahead, 0, 2) == expected_windows(0, 2));
  CHECK(taken(ahead, 4, 4) == expected_windows(4, 4));
  CHECK(disk.asked() == std::vector<int64_t>{0, 1, 2, 4, 5, 6, 7});
}

TEST_CASE("who waits for a range that loses its place is told, and what follows is right") {
  Disk disk;
  ReadAhead ahead(kRow, disk.read());
  ahead.hint(0, 2);
  disk.wait_for(0);
  Tokens lost = {1};
  std::thread reader([&] { lost = taken(ahead, 0, 2); });
  for (int64_t first : {10, 20, 30}) ahead.hint(first, 2);  // while window 0 is being read
  reader.join();
  CHECK(lost.empty());
  disk.let(kAll);
  CHECK(taken(ahead, 30, 2) == expected_windows(30, 2));
  CHECK(taken(ahead, 10, 2) == expected_windows(10, 2));
  CHECK(disk.asked() == std::vector<int64_t>{0, 10, 11, 20, 21, 30, 31});
}

TEST_CASE("closing inside a range waits for the window being read, not for the others") {
  Disk disk;
  auto ahead = std::make_unique<ReadAhead>(kRow, disk.read());
  ahead->hint(0, kAll);
  ahead->hint(kAll, kAll);
  disk.wait_for(0);
  std::atomic<bool> ended = false;
  std::thread end([&] {
    ahead.reset();
    ended = true;
  });
  while (!ended) {
    disk.let(1);
    std::this_thread::yield();
  }
  end.join();
  CHECK(static_cast<int64_t>(disk.asked().size()) < kAll);
}

TEST_CASE("steps that go on find their windows, and two more steps are on their way") {
  Disk disk;
  ReadAhead ahead(kRow, disk.read());
  constexpr int64_t kStride = 8, kOwn = 4;
  ahead.reserve(kOwn);
  for (int64_t step = 0; step < 50; ++step) {
    for (int64_t s = step; s < step + ReadAhead::kRanges; ++s) ahead.hint(s * kStride, kOwn);
    if (step == 0) disk.let((ReadAhead::kRanges - 1) * kOwn);
    disk.let(kOwn);
    disk.wait_for((step + 2) * kStride + kOwn - 1);  // requested before this step is taken
    for (int64_t w = 0; w < kOwn; w += 2) {
      CHECK(taken(ahead, step * kStride + w, 2) == expected_windows(step * kStride + w, 2));
    }
  }
}

}  // namespace
}  // namespace bamtrain
