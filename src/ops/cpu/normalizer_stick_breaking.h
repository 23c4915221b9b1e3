#pragma once
// Stick-breaking of whole rows: p_j = sigmoid(z_j) prod over the keys between j and the row's own
// of (1 - sigmoid(z_k)), in logarithms, from the right; the row's own key has no weight.

#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace row {

/// log(1 + e^z).
inline Vec softplus(Vec z) {
  const Vec size = z > 0.0f ? z : -z;
  return (z > 0.0f ? z : Vec{}) + simd::log(1.0f + simd::exp(-size));
}

class StickBreakingRows final : public RowNormalizer {
 public:
  void weights(float* z, int64_t n, SavedRow&) const override { form<false>(z, nullptr, n); }
  void recall(float* z, float* u, int64_t n, const SavedRow&) const override {
    form<true>(z, u, n);
  }
  int64_t support(const float*, int64_t n, const SavedRow&) const override { return n - 1; }

  /// u: sigmoid(z). dz_j = p_j dP_j (1 - u_j) - u_j sum over m < j of p_m dP_m.
  float adjoint(float* dp, const float* p, const float* u, int64_t n) const override {
    float before = 0;
    for_vectors(n, [&](int64_t j) {
      const Vec gained = simd::load(p + j) * simd::load(dp + j);
      const Vec sums = simd::running_sums<-1>(gained);
      const Vec sigmoid = simd::load(u + j);
      simd::store(dp + j, gained * (1.0f - sigmoid) - sigmoid * (before + (sums - gained)));
      before += simd::last_lane(sums);
    });
    return 0;
  }

 private:
  template <bool kSlopes>
  static void form(float* z, float* u, int64_t n) {
    z[n - 1] = kMinusInfinity;
    float broken = 0;  // the sum of log(1 - sigmoid) to the right
    for (int64_t j = (n - 1) / simd::kWidth * simd::kWidth; j >= 0; j -= simd::kWidth) {
      const Vec x = simd::load(z + j);
      const auto outside = x == kMinusInfinity;
      const Vec kept = outside ? Vec{} : softplus(x);
      const Vec sums = simd::running_sums<1>(kept);
      const Vec log_p = (x - kept) + (broken - (sums - kept));
      simd::store(z + j, outside ? Vec{} : simd::exp(log_p));
      if constexpr (kSlopes) simd::store(u + j, outside ? Vec{} : simd::exp(x - kept));
      broken -= simd::first_lane(sums);
    }
  }
};

inline StickBreakingRows rows_of(StickBreaking, const Attention&) { return {}; }

}  // namespace row
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
