#pragma once
// Softmax of whole rows, some of whose logits may be minus infinity.

#include <cmath>

#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace row {

/// z becomes p; returns the log of the sum of exp(z).
inline float softmax(float* z, int64_t n) {
  const float m = maximum(z, n);
  Vec total{};
  for_vectors(n, [&](int64_t j) {
    const Vec x = simd::load(z + j);
    const Vec p = x == kMinusInfinity ? Vec{} : simd::exp(x - m);
    simd::store(z + j, p);
    total += p;
  });
  const float sum = simd::sum(total);
  scale(z, n, 1 / sum);
  return m + std::log(sum);
}

/// z becomes p, and so does u.
inline void softmax_again(float* z, float* u, int64_t n, float level) {
  for_vectors(n, [&](int64_t j) {
    const Vec x = simd::load(z + j);
    const Vec p = x == kMinusInfinity ? Vec{} : simd::exp(x - level);
    simd::store(z + j, p);
    simd::store(u + j, p);
  });
}

class SoftmaxRows final : public RowNormalizer {
 public:
  void weights(float* z, int64_t n, SavedRow& saved) const override { saved.level = softmax(z, n); }
  void recall(float* z, float* u, int64_t n, const SavedRow& saved) const override {
    softmax_again(z, u, n, saved.level);
  }
  int64_t support(const float*, int64_t n, const SavedRow&) const override { return n; }
  float adjoint(float* dp, const float*, const float* u, int64_t n) const override {
    centred(dp, u, n);
    return 0;
  }
};

inline SoftmaxRows rows_of(Softmax, const Attention&) { return {}; }

}  // namespace row
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
