#pragma once
// Random numbers of one sequence.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "tasks/example.h"

namespace bamtrain {

/// A sequence of random numbers, a pure function of the stream and the sequence's index: index i
/// uses the stream from number i 2^kBits on.
class Draws {
 public:
  static constexpr int kBits = 22;  // a sequence may draw 2^kBits numbers
  static constexpr int64_t kMaxIndex = int64_t{1} << (63 - kBits);

  /// REQUIRES: 0 <= index < kMaxIndex; the stream must outlive the draws.
  Draws(const Rng& stream, int64_t index)
      : stream_(stream), next_(static_cast<uint64_t>(index) << kBits), end_(next_ + (1u << kBits)) {
    require(index >= 0 && index < kMaxIndex, "a sequence numbered from 0 to 2^41 - 1");
  }

  /// Uniform in [0, n). REQUIRES: n >= 1.
  int64_t below(int64_t n) {
    require(next_ < end_, "a sequence of fewer random numbers");
    return static_cast<int64_t>(stream_.below(next_++, static_cast<uint64_t>(n)));
  }
  /// Uniform in [low, high], inclusive.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  int32_t symbol(int32_t low, int32_t high) { return static_cast<int32_t>(between(low, high)); }
  /// `count` independent symbols.
  Symbols symbols(int64_t count, int32_t low, int32_t high) {
    Symbols ids(static_cast<size_t>(count));
    for (int32_t& id : ids) id = symbol(low, high);
    return ids;
  }
  /// True with probability `share`.
  bool chance(double share) {
    require(next_ < end_, "a sequence of fewer random numbers");
    return stream_.uniform(next_++) < share;
  }

  /// `count` distinct numbers below n; every ordered choice is equally likely. REQUIRES: 0 <= count
  /// <= n.
  std::vector<int64_t> choose(int64_t count, int64_t n) {
    require(count >= 0 && count <= n, "no more to choose than there are");
    std::vector<int64_t> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = i;
    for (int64_t i = 0; i < count; ++i) {
      std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(between(i, n - 1))]);
    }
    all.resize(static_cast<size_t>(count));
    return all;
  }

 private:
  const Rng& stream_;
  uint64_t next_, end_;
};

}  // namespace bamtrain
