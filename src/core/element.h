#pragma once
// Single elements as double, whatever their dtype: for setting up and reading back, not for loops
// that matter.

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
  }
  return 0;
}

/// Rounds to the tensor's dtype.
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
  }
}

}  // namespace bamtrain
