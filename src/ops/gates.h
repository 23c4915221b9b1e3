#pragma once
// Indexing of gates in host memory.

#include <cstdint>

#include "core/tensor.h"

namespace bamtrain {

/// Returns the index of gate (b, t, h) in a (B, T, H) tensor.
inline int64_t gate_at(const Tensor& gates, int64_t b, int64_t t, int64_t h) {
  return b * gates.stride[0] + t * gates.stride[1] + h * gates.stride[2];
}

}  // namespace bamtrain
