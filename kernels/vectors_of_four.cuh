#pragma once
// Four elements at a time, for kernels that mix fp32 and bf16: 16 bytes of the one, 8 of the other.
// In both, consecutive threads access consecutive vectors.

#include "vectors.cuh"

namespace bamtrain::kernels {

struct alignas(8) HalfWords {
  uint32_t w[2];
};

/// REQUIRES: `to` is aligned to 16 bytes, or 8 for bf16.
BAMTRAIN_DEVICE void store_four(float* to, const float (&x)[4]) { store_vector(to, x); }
BAMTRAIN_DEVICE void store_four(bf16* to, const float (&x)[4]) {
  *reinterpret_cast<HalfWords*>(to) = {
      {device::pack_bf16(x[0], x[1]), device::pack_bf16(x[2], x[3])}};
}

}  // namespace bamtrain::kernels
