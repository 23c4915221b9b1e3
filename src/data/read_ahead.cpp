#include "data/read_ahead.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/signals_blocked.h"

namespace bamtrain {

ReadAhead::ReadAhead(int64_t row, Read read) : row_(row), read_(std::move(read)) {
  require(row >= 1, "windows of at least one token");
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// REQUIRES: the lock is held.
void ReadAhead::start() {
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

void ReadAhead::reserve(int64_t count) {
  const std::lock_guard lock(mutex_);
  require(hints_ == 0 && count >= 0, "memory that is taken before the first hint");
  // resize, not reserve: it touches the pages, so that the thread does not allocate them later.
  for (Range& r : ranges_) r.rows.resize(static_cast<size_t>(count * row_));
  start();
}

void ReadAhead::hint(int64_t first, int64_t count) {
  {
    const std::lock_guard lock(mutex_);
    if (holder(first, count)) return;
    start();
    Range& oldest =
        *std::min_element(ranges_.begin(), ranges_.end(),
                          [](const Range& a, const Range& b) { return a.number < b.number; });
    oldest.first = first;
    oldest.count = count;
    oldest.number = ++hints_;
    oldest.arrived = 0;
    oldest.queued = true;
    oldest.ended = false;
  }
  changed_.notify_all();
}

bool ReadAhead::take(int64_t first, int64_t count, int32_t* out) {
  if (count == 0) return true;
  std::unique_lock lock(mutex_);
  const Range* range = nullptr;
  const auto is_there = [&] { return first - range->first + count <= range->arrived; };
  changed_.wait(lock, [&] {
    range = holder(first, count);
    return !range || range->ended || is_there();
  });
  if (!range || !is_there()) return false;
  std::copy_n(range->rows.begin() + (first - range->first) * row_, count * row_, out);
  return true;
}

/// The range that holds or will hold all of these windows, or null. REQUIRES: the lock is held.
const ReadAhead::Range* ReadAhead::holder(int64_t first, int64_t count) const {
  for (const Range& r : ranges_) {
    if (r.number > 0 && first >= r.first && first - r.first <= r.count - count) return &r;
  }
  return nullptr;
}

void ReadAhead::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Range* next = nullptr;
    changed_.wait(lock, [&] {
      next = nullptr;
      for (Range& r : ranges_) {
        if (r.queued && (!next || r.number < next->number)) next = &r;
      }
      return stop_ || next;
    });
    if (stop_) return;
    fill(next, &lock);
  }
}

/// Reads a range with the lock released. This thread owns the rows that have not arrived. If
/// another range replaces this one meanwhile, nothing more arrives and reading stops.
void ReadAhead::fill(Range* range, std::unique_lock<std::mutex>* lock) {
  range->queued = false;
  const int64_t number = range->number, first = range->first, count = range->count;
  const auto arrived = [&](int64_t windows) {
    const std::lock_guard locked(mutex_);
    if (stop_ || range->number != number) return false;
    range->arrived = windows;
    changed_.notify_all();
    return true;
  };
  lock->unlock();
  try {
    const auto size = static_cast<size_t>(count * row_);
    if (range->rows.size() < size) range->rows.resize(size);
    read_(first, count, range->rows.data(), std::ref(arrived));  // by reference: no allocation
  } catch (...) {
    // The caller that needs the window gets the error when it reads it.
  }
  lock->lock();
  if (range->number == number) range->ended = true;
  changed_.notify_all();
}

}  // namespace bamtrain
