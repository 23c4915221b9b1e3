#pragma once
// Single elements as double, whatever their dtype. For setup and inspection, not for hot loops.

#include <cstdint>

#include "core/tensor.h"

namespace bamtrain {

/// The element `offset` elements after the tensor's first in memory.
inline double get(const Tensor& t, int64_t offset) {
  switch (t.dtype) {
    case Dtype::f64:
      return t.ptr<double>()[offset];
    case Dtype::f32:
      return static_cast<double>(t.ptr<float>()[offset]);
    case Dtype::bf16:
      return static_cast<double>(static_cast<float>(t.ptr<bf16>()[offset]));
    case Dtype::i32:
      return t.ptr<int32_t>()[offset];
    case Dtype::f16:
      return static_cast<double>(static_cast<float>(t.ptr<f16>()[offset]));
    case Dtype::u8:
      return t.ptr<uint8_t>()[offset];
  }
  return 0;
}

/// Rounds to the tensor's dtype. REQUIRES: not f16 or u8.
inline void put(const Tensor& t, int64_t offset, double x) {
  switch (t.dtype) {
    case Dtype::f64:
      t.ptr<double>()[offset] = x;
      break;
    case Dtype::f32:
      t.ptr<float>()[offset] = static_cast<float>(x);
      break;
    case Dtype::bf16:
      t.ptr<bf16>()[offset] = bf16(static_cast<float>(x));
      break;
    case Dtype::i32:
      t.ptr<int32_t>()[offset] = static_cast<int32_t>(x);
      break;
    case Dtype::f16:
    case Dtype::u8:
      require(false, "a dtype that tensors of ours have");
  }
}

/// Calls f(offset, n) for every element: its offset in memory, as for get and put, and its index in
/// row-major order.
template <class F>
void for_elements(const Tensor& t, F&& f) {
  const int64_t size = t.size();
  if (t.contiguous()) {
    for (int64_t n = 0; n < size; ++n) f(n, n);
    return;
  }
  const int inner = t.rank - 1;
  const int64_t row = t.shape[inner];
  for (int64_t n = 0; n < size; n += row) {
    int64_t rest = n / row, offset = 0;
    for (int d = inner - 1; d >= 0; --d) {
      offset += rest % t.shape[d] * t.stride[d];
      rest /= t.shape[d];
    }
    for (int64_t k = 0; k < row; ++k) f(offset + k * t.stride[inner], n + k);
  }
}

}  // namespace bamtrain
