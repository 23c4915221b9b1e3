#pragma once
// Logit scales per row from their parameters, and the adjoint. The formulas of src/scales are
// evaluated in fp64 and rounded once, as in ops/mechanisms/scale.cpp on the host. Supports the
// scales of src/scales/length_scales.h, and by_length.

#include <cstdint>

#include "launch.h"
#include "scales/length_scale.h"

namespace bamtrain::kernels {

/// A scale and its rows. Row i of sequence b sees n = last_key[b][i] - first_key[b][i] + 1 keys; a
/// null last_key means i.
struct ScaleRows {
  const char* name = "";  // as in scales/registry.h
  FormulaConstants constants;
  const float* theta[kMaxScaleScalars] = {};  // (H) each, in scale order; by_length: (H, lengths)
  const int32_t* first_key = nullptr;         // (B, T), in [0, i]
  const int32_t* last_key = nullptr;          // (B, T), in [i, T); null: i
  int64_t B = 0, H = 0, T = 0;                // H < 2^16, B T < 2^31
  int64_t first_head = 0;                     // earlier heads have t = 1
};

/// scale (B, H, T) = t at (h, n). Refuses a name without kernels, sizes that are not positive and a
/// missing theta.
device::LaunchStatus scale_forward(float* scale, const ScaleRows& rows, device::Stream stream);

/// Rows whose gradients one block sums.
constexpr int kScaleRowsPerBlock = 4096;
/// Doubles of ScaleGradients::scratch.
constexpr int64_t scale_backward_scratch(int64_t B, int64_t H, int64_t T) {
  return kMaxScaleScalars * H * ((B * T + kScaleRowsPerBlock - 1) / kScaleRowsPerBlock);
}

struct ScaleGradients {
  float* dtheta[kMaxScaleScalars] = {};  // as theta, +=; null: not trained
  const float* dscale = nullptr;         // (B, H, T)
  double* scratch = nullptr;             // scale_backward_scratch doubles
};

/// dtheta[p][h] += sum over b, i of dscale dt/dtheta[p], in fp64 and in a fixed order. Two kernels,
/// one for by_length; launches nothing if every dtheta of the scale is null. Refuses what
/// scale_forward refuses.
device::LaunchStatus scale_backward(const ScaleGradients& g, const ScaleRows& rows,
                                    device::Stream stream);

}  // namespace bamtrain::kernels
