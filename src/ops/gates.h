#pragma once
// Gates in host memory.

#include <cstdint>

#include "core/tensor.h"

namespace bamtrain {

/// Where gate (b, t, h) lies in a (B, T, H).
inline int64_t gate_at(const Tensor& gates, int64_t b, int64_t t, int64_t h) {
  return b * gates.stride[0] + t * gates.stride[1] + h * gates.stride[2];
}

}  // namespace bamtrain
