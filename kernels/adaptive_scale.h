#pragma once
// Logit scales from gates of the row, and the way back. A: float or bf16. The formula is that of
// src/scales/adaptive.h in fp64; see adaptive_scale_forward in ops/ops.h.

#include <cstdint>

#include "launch.h"
#include "scales/scale.h"

namespace bamtrain::kernels {

using device::bf16;

/// Gates (B, T, 2 H), strides in elements, innermost contiguous: of beta, then of gamma. Row i of
/// sequence b sees n = i - first_key[b][i] + 1 keys.
template <class A>
struct AdaptiveScale {
  const A* gates = nullptr;
  int64_t batch = 0, row = 0;
  const float* bias[2] = {};           // (H): added to the gates of beta and gamma. Null: nothing
  const int32_t* first_key = nullptr;  // (B, T), in [0, i]
  ScaleConstants constants;
  int B = 0, H = 0, T = 0;
  int first_head = 0;  // the heads before it are not scaled: t = 1
};

/// scale (B, H, T) = t: one kernel. Refuses sizes that are not positive, over 65,535 sequences or
/// heads, a first head that there is not, missing arrays and one bias without the other.
template <class A>
device::LaunchStatus adaptive_scale_forward(float* scale, const AdaptiveScale<A>& s,
                                            device::Stream stream);

/// Rows whose gradients one block adds.
constexpr int kAdaptiveRows = 256;
/// Doubles of AdaptiveScaleGradients::scratch.
constexpr int64_t adaptive_scale_scratch(int64_t B, int64_t H, int64_t T) {
  return 2 * H * B * ((T + kAdaptiveRows - 1) / kAdaptiveRows);
}

template <class A>
struct AdaptiveScaleGradients {
  A* dgates = nullptr;            // laid out as the gates
  float* dbias[2] = {};           // (H), +=, where there is a bias
  const float* dscale = nullptr;  // (B, H, T)
  double* scratch = nullptr;      // adaptive_scale_scratch doubles, where there is a bias
};

/// dgates, 0 in heads that are not scaled, and dbias, in fp64 and in a fixed order: one kernel, two
/// with a bias. Refuses what the forward pass refuses.
template <class A>
device::LaunchStatus adaptive_scale_backward(const AdaptiveScaleGradients<A>& g,
                                             const AdaptiveScale<A>& s, device::Stream stream);

}  // namespace bamtrain::kernels
