#pragma once
// Loops over vectors of a row, shared by the element-wise operations of the CPU backend.

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
