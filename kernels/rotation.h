#pragma once
// Rotary position embedding, in place. A: float or bf16.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

template <class A>
struct Rotation {
  A* x = nullptr;                        // (B, T, heads, D), innermost dimension contiguous;
  int64_t batch = 0, row = 0, head = 0;  // strides in elements. Heads do not overlap
  int B = 0, T = 0, heads = 0, D = 0;    // D even
  const int32_t* positions = nullptr;    // (B, T), in [0, T')
  const float* cosine = nullptr;         // (T', D / 2)
  const float* sine = nullptr;           // (T', D / 2)
  bool inverse = false;                  // rotate back: the adjoint
};

/// Rotates the pairs (x[c], x[c + D / 2]) by the angles of their position: one kernel. One call
/// covers q and k of a fused tensor if their heads are equally spaced. Refuses an odd D, and sizes
/// that are not positive or exceed 2^31 rows. Fast if D / 2, the strides and the addresses are
/// multiples of 16 bytes.
template <class A>
device::LaunchStatus rotate(const Rotation<A>& r, device::Stream stream);

}  // namespace bamtrain::kernels
