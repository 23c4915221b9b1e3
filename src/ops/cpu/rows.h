#pragma once
// Loops over vectors of a row, shared by the element-wise operations of the CPU backend.

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "core/error.h"
#include "core/tensor.h"
#include "ops/cpu/simd.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace rows {

using simd::kWidth;
using simd::Vec;

/// Calls f(c, n) for whole vectors with n = kWidth, then for the rest of the row with n < kWidth.
template <class F>
inline void for_vectors(int64_t C, F&& f) {
  int64_t c = 0;
  for (; c + kWidth <= C; c += kWidth) f(c, std::integral_constant<int64_t, kWidth>());
  if (c < C) f(c, C - c);
}

/// Loads n elements at p; the other lanes are zero. Whole vectors cost no test, since n is a
/// constant there.
template <class T, class N>
inline Vec load(const T* p, N n) {
  if constexpr (std::is_same_v<N, std::integral_constant<int64_t, kWidth>>)
    return simd::load(p);
  else
    return simd::load_partial(p, n);
}
template <class T, class N>
inline void store(T* p, Vec v, N n) {
  if constexpr (std::is_same_v<N, std::integral_constant<int64_t, kWidth>>)
    simd::store(p, v);
  else
    simd::store_partial(p, v, n);
}

/// to[n] = <x, at(n)> for n < count, of D elements; a whole vector is stored. at(n): a pointer,
/// asked for when it is read.
template <class RowAt>
inline void dots(float* to, const float* x, int64_t D, int64_t count, RowAt&& at) {
  for (int64_t n = 0; n < count; n += kWidth) {
    Vec sums[kWidth] = {};
    const int64_t here = std::min<int64_t>(kWidth, count - n);
    for (int64_t k = 0; k < here; ++k) {
      const auto* const row = at(n + k);
      Vec sum{};
      for_vectors(D,
                  [&](int64_t c, auto lanes) { sum += load(x + c, lanes) * load(row + c, lanes); });
      sums[k] = sum;
    }
    simd::store(to + n, simd::sums_of(sums));
  }
}

/// Calls f.template operator()<A>() with the element type of activations.
template <class F>
inline void dispatch_activation(Dtype t, F&& f) {
  if (t == Dtype::f32) return f.template operator()<float>();
  require(t == Dtype::bf16, "f32 or bf16 activations in the CPU backend");
  f.template operator()<bf16>();
}

}  // namespace rows
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
