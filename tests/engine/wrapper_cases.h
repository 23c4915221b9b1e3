#pragma once
// The kernels of wrapper_kernels.cuh with their operands, which record_wrappers.cu runs on a GPU
// and golden.cpp on the engine. The operands are computed from integers only, so both have the same
// bits.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/wrapper_kernels.cuh"

namespace bamtrain::wrappers {

/// How far two machines may differ.
///
/// mma: each element is a sum of 17 terms, whose products are exact. The hardware aligns the terms
/// to the largest and truncates them, in one step or two depending on the architecture; the engine
/// rounds each of 16 sums. Either way the error is below 2^-23 of the sum of absolute values at
/// each of at most 17 steps, so the two differ by at most 2^-18 of it. Small integer operands leave
/// no error: mma_exact. exp2, log2: PTX states a relative error of at most 2^-22 for ex2.approx.
/// For lg2.approx it states an absolute error of 2^-22 for arguments in (0.5, 2) and a relative
/// error of 2^-22 elsewhere. 2^-24 is added for the rounding of the reference value.
enum class Tolerance { exact, mma, exp2, log2 };

struct Case {
  std::string name;
  void (*kernel)(const uint32_t* in, uint32_t* out);  // one block of one warp
  size_t shared_bytes;
  std::vector<uint32_t> in;
  size_t out_words;
  Tolerance tolerance;
};

/// The upper half of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Integers {
 public:
  explicit Integers(uint64_t seed) : state_(seed) {}
  uint32_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>((z ^ z >> 31) >> 32);
  }
  std::vector<uint32_t> words(size_t n) {
    std::vector<uint32_t> all(n);
    for (uint32_t& w : all) w = next();
    return all;
  }
  /// Bits of a float with random sign and fraction, and magnitude in [2^from, 2^to).
  uint32_t real(int from, int to) {
    const uint32_t exponent = static_cast<uint32_t>(127 + from) + next() % uint32_t(to - from);
    return (next() & 0x807FFFFFu) | exponent << 23;
  }
  uint32_t bf16_pair(int from, int to) {
    const uint32_t low = real(from, to), high = real(from, to);  // fixes their order
    return low >> 16 | (high & 0xFFFF0000u);
  }
  /// Two bf16 integers in [-8, 8].
  uint32_t small_integer_pair() {
    const uint32_t low = small_integer(), high = small_integer();
    return low >> 16 | high;
  }
  /// Bits of an integer float in [-8, 8]: its lower half is zero.
  uint32_t small_integer() {
    static constexpr uint32_t kBits[9] = {0x00000000, 0x3F800000, 0x40000000,
                                          0x40400000, 0x40800000, 0x40A00000,
                                          0x40C00000, 0x40E00000, 0x41000000};
    const uint32_t magnitude = kBits[next() % 9];
    return magnitude == 0 ? 0 : magnitude | (next() & 0x80000000u);
  }

 private:
  uint64_t state_;
};

/// Zeros, infinities, NaN, subnormal numbers, ties in rounding to bf16 and their neighbours.
inline std::vector<uint32_t> special_floats() {
  return {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001,
          0xFFFFFFFF, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x807FFFFF, 0x3F800000,
          0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001,
          0xBF808000, 0xBF818000, 0x7F7F8000, 0x00008000, 0x00018000, 0x40000000, 0x3F000000,
          0xC2FC0000, 0xC2FE0000, 0x42FE0000, 0x43000000};
}

inline std::vector<Case> cases() {
  Integers g(2024);
  std::vector<Case> all;
  const auto add = [&](const char* name, void (*kernel)(const uint32_t*, uint32_t*),
                       size_t shared_bytes, std::vector<uint32_t> in, size_t out_words,
                       Tolerance tolerance) {
    all.push_back({name, kernel, shared_bytes, std::move(in), out_words, tolerance});
  };
  const auto shuffled = size_t{kShuffles} * kLanes;
  add("shuffle_xor", shuffle_kernel<Shuffle::exclusive_or>, 0, g.words(kLanes), shuffled,
      Tolerance::exact);
  add("shuffle", shuffle_kernel<Shuffle::index>, 0, g.words(kLanes), shuffled, Tolerance::exact);
  add("shuffle_up", shuffle_kernel<Shuffle::up>, 0, g.words(kLanes), shuffled, Tolerance::exact);
  add("shuffle_down", shuffle_kernel<Shuffle::down>, 0, g.words(kLanes), shuffled,
      Tolerance::exact);
  add("ballot", ballot_kernel, 0, g.words(kLanes), 2 * kLanes, Tolerance::exact);

  const auto matrix = [&](const char* name, void (*kernel)(const uint32_t*, uint32_t*), size_t n) {
    add(name, kernel, 512, g.words(4 * kLanes), n * kLanes, Tolerance::exact);
  };
  matrix("ldmatrix_x1", ldmatrix_kernel<1, false>, 1);
  matrix("ldmatrix_x2", ldmatrix_kernel<2, false>, 2);
  matrix("ldmatrix_x4", ldmatrix_kernel<4, false>, 4);
  matrix("ldmatrix_x1_transposed", ldmatrix_kernel<1, true>, 1);
  matrix("ldmatrix_x2_transposed", ldmatrix_kernel<2, true>, 2);
  matrix("ldmatrix_x4_transposed", ldmatrix_kernel<4, true>, 4);

  std::vector<uint32_t> operands;
  for (int i = 0; i < 6 * kLanes; ++i) operands.push_back(g.bf16_pair(-3, 4));
  for (int i = 0; i < 4 * kLanes; ++i) operands.push_back(g.real(-3, 6));
  add("mma", mma_kernel, 0, operands, 4 * kLanes, Tolerance::mma);
  operands.clear();
  for (int i = 0; i < 6 * kLanes; ++i) operands.push_back(g.small_integer_pair());
  for (int i = 0; i < 4 * kLanes; ++i) operands.push_back(g.small_integer());
  add("mma_exact", mma_kernel, 0, operands, 4 * kLanes, Tolerance::exact);

  add("copy_async", copy_async_kernel, 0, g.words(13 * kLanes), 12 * kLanes, Tolerance::exact);

  add("shared", shared_kernel, kDynamicWords * sizeof(uint32_t), g.words(kLanes), 2 * kLanes,
      Tolerance::exact);

  const auto scalars = [&](size_t count, int from, int to, bool positive) {
    std::vector<uint32_t> in = special_floats();
    while (in.size() < count) in.push_back(g.real(from, to) & (positive ? 0x7FFFFFFFu : ~0u));
    return in;
  };
  const auto values = size_t{kValues} * kLanes;
  add("exp2", function_kernel<Function::exp2>, 0, scalars(values, -12, 7, false), values,
      Tolerance::exp2);
  add("log2", function_kernel<Function::log2>, 0, scalars(values, -126, 128, true), values,
      Tolerance::log2);
  add("pack_bf16", pack_kernel, 0, scalars(2 * values, -126, 128, false), values, Tolerance::exact);
  return all;
}

}  // namespace bamtrain::wrappers
