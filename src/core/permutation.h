#pragma once
// A random permutation of n items in O(1) memory.

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/rng.h"

namespace bamtrain {

/// A bijection of [0, n), a pure function of (n, seed, epoch). It is a Feistel network over the
/// smallest even number of bits that holds n - 1, with Philox as its round function. Values are
/// cycle-walked until they are below n (Black and Rogaway, "Ciphers with arbitrary finite domains",
/// CT-RSA 2002). The network's domain is smaller than 4 n, so a value costs fewer than four
/// applications on average.
class Permutation {
 public:
  /// REQUIRES: 1 <= n <= 2^62.
  Permutation(int64_t n, uint64_t seed, int64_t epoch)
      : n_(static_cast<uint64_t>(n)), rng_(seed, "data.order." + std::to_string(epoch)) {
    require(n >= 1 && n <= int64_t{1} << 62, "a permutation of 1 to 2^62 things");
    while ((uint64_t{1} << (2 * half_bits_)) < n_) ++half_bits_;
  }

  /// The image of position `x`. REQUIRES: 0 <= x < n.
  int64_t operator()(int64_t x) const {
    uint64_t y = static_cast<uint64_t>(x);
    require(y < n_, "a position inside the permutation");
    do {
      y = network(y);
    } while (y >= n_);
    return static_cast<int64_t>(y);
  }

 private:
  static constexpr uint64_t kRounds = 8;

  uint64_t network(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (rng_.bits(round << 32 | right) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint64_t n_;
  Rng rng_;
  int half_bits_ = 0;
};

}  // namespace bamtrain
