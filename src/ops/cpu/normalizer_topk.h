#pragma once
// Top-k of whole rows: softmax over the keys that are kept.

#include <algorithm>
#include <cstring>

#include "ops/cpu/normalizer_softmax.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace row {

/// Integers in the order of floats that are not NaN, and back. -0 counts as 0.
inline int32_t ordered(float x) {
  const float positive_zero = x + 0.0f;
  int32_t bits;
  std::memcpy(&bits, &positive_zero, sizeof bits);
  return bits < 0 ? static_cast<int32_t>(INT32_MIN - int64_t{bits}) : bits;
}
inline float unordered(int32_t n) {
  const int32_t bits = n < 0 ? static_cast<int32_t>(INT32_MIN - int64_t{n}) : n;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// How many of z[0, n) are at least x.
inline int64_t count_from(const float* z, int64_t n, float x) {
  simd::IVec count{};
  for_vectors(n, [&](int64_t j) { count -= simd::load(z + j) >= x; });
  return sum(count);
}

/// The k-th largest of z[0, n), 1 <= k <= n, by halving the range of numbers between the smallest
/// and the largest.
inline float kth_largest(const float* z, int64_t n, int64_t k) {
  Vec smallest = simd::splat(-kMinusInfinity);
  for_vectors(n, [&](int64_t j) {
    const Vec x = simd::load(z + j);
    smallest = x == kMinusInfinity ? smallest : -simd::max(-x, -smallest);
  });
  // At least k are >= low; fewer than k are >= high.
  int64_t low = ordered(-simd::maximum(-smallest)), high = int64_t{ordered(maximum(z, n))} + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const int64_t count = count_from(z, n, unordered(static_cast<int32_t>(middle)));
    (count >= k ? low : high) = middle;
    if (count == k) break;
  }
  const float bound = unordered(static_cast<int32_t>(low));
  Vec least = simd::splat(-kMinusInfinity);
  for_vectors(n, [&](int64_t j) {
    const Vec x = simd::load(z + j);
    least = x >= bound ? -simd::max(-x, -least) : least;
  });
  return -simd::maximum(-least);
}

class TopkRows final : public RowNormalizer {
 public:
  TopkRows(const TopkKeys& keys, int64_t T) : keys_(keys), T_(T) {}

  void weights(float* z, int64_t n, SavedRow& saved) const override {
    const int64_t k = keys_.of(n, T_);
    saved.threshold = kth_largest(z, n, k);
    saved.last = static_cast<int32_t>(n - 1);
    if (count_from(z, n, saved.threshold) != k) {
      int64_t more = k - count_above(z, n, saved.threshold);  // of those that are equal
      for (int64_t j = 0; j < n && more > 0; ++j) {
        if (z[j] != saved.threshold) continue;
        saved.last = static_cast<int32_t>(j);
        --more;
      }
    }
    drop(z, n, saved);
    saved.level = softmax(z, n);
  }
  void recall(float* z, float* u, int64_t n, const SavedRow& saved) const override {
    drop(z, n, saved);
    softmax_again(z, u, n, saved.level);
  }
  int64_t support(const float*, int64_t n, const SavedRow&) const override {
    return keys_.of(n, T_);
  }
  float adjoint(float* dp, const float*, const float* u, int64_t n) const override {
    centred(dp, u, n);
    return 0;
  }

 private:
  static int64_t count_above(const float* z, int64_t n, float x) {
    return count_from(z, n, std::nextafter(x, INFINITY));
  }
  static void drop(float* z, int64_t n, const SavedRow& saved) {
    for_vectors(n, [&](int64_t j) {
      const Vec x = simd::load(z + j);
      const simd::IVec key = simd::lanes() + static_cast<int32_t>(j);
      const simd::IVec kept =
          (x > saved.threshold) | ((x == saved.threshold) & (key <= saved.last)) | (x != x);
      simd::store(z + j, kept ? x : simd::splat(kMinusInfinity));
    });
  }

  TopkKeys keys_;
  int64_t T_;
};

inline TopkRows rows_of(Topk, const Attention& a) { return {a.form.normalizer.keys, a.k.shape[1]}; }

}  // namespace row
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
