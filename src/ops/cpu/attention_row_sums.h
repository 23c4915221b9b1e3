#pragma once
// Loops over whole rows of the CPU attention.

#include <limits>

#include "ops/cpu/simd.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace row {

using simd::Vec;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// f(j) for the first element of every vector of a row of n.
template <class F>
inline void for_vectors(int64_t n, F&& f) {
  for (int64_t j = 0; j < n; j += simd::kWidth) f(j);
}

/// The largest of x[0, n) that are not NaN, the room after it included.
inline float maximum(const float* x, int64_t n) {
  Vec highest = simd::splat(kMinusInfinity);
  for_vectors(n, [&](int64_t j) { highest = simd::max(simd::load(x + j), highest); });
  return simd::maximum(highest);
}

/// The sum of x[0, n), the room after it included: NaN where any of them is.
inline float total(const float* x, int64_t n) {
  Vec sums{};
  for_vectors(n, [&](int64_t j) { sums += simd::load(x + j); });
  return simd::sum(sums);
}

/// to = x[0, n) times `factor`; to may be x.
inline void scaled(float* to, const float* x, int64_t n, float factor) {
  for_vectors(n, [&](int64_t j) { simd::store(to + j, simd::load(x + j) * factor); });
}
inline void scale(float* x, int64_t n, float factor) { scaled(x, x, n, factor); }

inline float dot(const float* x, const float* y, int64_t n) {
  Vec sums{};
  for_vectors(n, [&](int64_t j) { sums += simd::load(x + j) * simd::load(y + j); });
  return simd::sum(sums);
}

/// The sum of all lanes.
inline int64_t sum(simd::IVec v) {
  int64_t total = 0;
  for (int lane = 0; lane < simd::kWidth; ++lane) total += v[lane];
  return total;
}

/// Of which weight on logarithms are formed.
constexpr float kLeastLogarithm = 1e-35f;

/// -p log p; 0 where p is.
inline Vec entropy_term(Vec p) {
  return p == 0.0f ? Vec{} : -p * simd::log(simd::max(simd::splat(kLeastLogarithm), p));
}

/// Of the weights p[0, n), in nats.
inline float entropy(const float* p, int64_t n) {
  Vec total{};
  for_vectors(n, [&](int64_t j) { total += entropy_term(simd::load(p + j)); });
  return simd::sum(total);
}

/// dz = u (dP - D), D = sum u dP / sum u, in place of dP; returns D. REQUIRES: weights whose sum
/// does not depend on the logits.
inline float centred(float* dp, const float* u, int64_t n) {
  Vec total{}, weighted{};
  for_vectors(n, [&](int64_t j) {
    const Vec x = simd::load(u + j);
    total += x;
    weighted += x * simd::load(dp + j);
  });
  const float D = simd::sum(weighted) / simd::sum(total);
  for_vectors(
      n, [&](int64_t j) { simd::store(dp + j, simd::load(u + j) * (simd::load(dp + j) - D)); });
  return D;
}

}  // namespace row
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
