#pragma once
// Converts tensors to launcher arguments.

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/error.h"
#include "core/tensor.h"
#include "kernels/attention.h"
#include "kernels/copy.h"

namespace bamtrain::cuda {

/// The kernels' element type for each dtype.
template <class A>
A* pointer(const Tensor& t) {
  if constexpr (std::is_same_v<std::remove_const_t<A>, device::bf16>) {
    return reinterpret_cast<A*>(t ? t.ptr<bf16>() : nullptr);
  } else {
    return t ? t.ptr<std::remove_const_t<A>>() : nullptr;
  }
}
inline float* f32(const Tensor& t) { return pointer<float>(t); }
inline const int32_t* i32(const Tensor& t) { return pointer<const int32_t>(t); }

/// Calls f.template operator()<A>() with the element type of activations.
template <class F>
void dispatch(Dtype t, F&& f) {
  if (t == Dtype::f32) return f.template operator()<float>();
  require(t == Dtype::bf16, "f32 or bf16 activations in the CUDA backend");
  f.template operator()<device::bf16>();
}

/// A view of a (B, T, heads, D) tensor.
template <class A>
kernels::Rows<A> rows(const Tensor& t) {
  require(t.rank == 4 && t.stride[3] == 1, "heads with contiguous channels");
  return {pointer<A>(t), t.stride[0], t.stride[1], t.stride[2]};
}

/// A view with any dtype and strides.
inline kernels::Strided strided(const Tensor& t) {
  require(t.rank >= 1 && t.stride[t.rank - 1] == 1, "rows without gaps");
  kernels::Strided s;
  s.data = t.data;
  s.element = static_cast<int>(size_of(t.dtype));
  const int leading = 4 - t.rank;
  for (int d = 0; d < t.rank; ++d) s.shape[leading + d] = t.shape[d];
  for (int d = 0; d + 1 < t.rank; ++d) s.stride[leading + d] = t.stride[d];
  return s;
}

inline int as_int(int64_t n) {
  require(n >= 0 && n <= INT32_MAX, "a size below 2^31");
  return static_cast<int>(n);
}

/// Throws Error (config) about the settings' `key` unless `holds`: kernels do not support the
/// shape.
inline void require_on_cuda(bool holds, const char* key, const char* expected, int64_t found) {
  if (holds) return;
  throw Error(ExitCode::config, key, std::string(expected) + " on CUDA", std::to_string(found),
              "change it, or set device to \"cpu\"");
}

}  // namespace bamtrain::cuda
