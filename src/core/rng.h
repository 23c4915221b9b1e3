#pragma once
// Counter-based random numbers: every value is a pure function of (seed, stream name, index), so
// initial weights and data order do not depend on process count, thread count or call order.

#include <array>
#include <cstdint>
#include <string_view>

namespace bamtrain {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A named stream of random numbers for a seed.
class Rng {
 public:
  Rng(uint64_t seed, std::string_view stream);

  uint64_t bits(uint64_t index) const;
  double uniform(uint64_t index) const;  // [0, 1), 53 bits
  double normal(uint64_t index) const;   // mean 0, standard deviation 1 (Box-Muller)
  /// Uniform integer in [0, n), with negligible modulo bias (128-bit multiply).
  uint64_t below(uint64_t index, uint64_t n) const;

 private:
  std::array<uint32_t, 4> block(uint64_t index) const;

  uint64_t seed_;
  uint64_t stream_;
};

/// FNV-1a over the bytes of `s`.
uint64_t fnv1a64(std::string_view s);

}  // namespace bamtrain
