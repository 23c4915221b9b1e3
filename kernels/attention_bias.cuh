#pragma once
// b of one logit, in every form that AttentionInputs has: for the plain kernels, which keep nothing
// between logits.

#include "attention.h"
#include "device.cuh"

namespace bamtrain::kernels {

/// b, db/dx of x = S_j - S_i, and of fire db/du and u.
struct Bias {
  float b = 0, derivative = 0, slope = 0, u = 0;
};

/// At (h, i, j) of sequence b.
template <class A>
BAMTRAIN_DEVICE Bias bias_of(const AttentionInputs<A>& a, int b, int h, int i, int j) {
  Bias x;
  if (a.table != nullptr) x.b = a.table[h * a.table_head + i - j];
  if (a.sums != nullptr) {
    const double* const S = a.sums + (static_cast<int64_t>(b) * a.H + h) * a.T;
    const auto rise = static_cast<float>(S[j] - S[i]);
    x.b = a.log_square ? -logf(1.0f + rise * rise) : rise;
    x.derivative = a.log_square ? -2.0f * rise / (1.0f + rise * rise) : 1.0f;
  }
  if (a.fire.psi != nullptr) {
    const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + i];
    int64_t line = int64_t{h} * kFireSegments;  // of the segment
    for (int n = 0; n < kFireHidden; ++n) line += a.fire.ends[position * kFireHidden + n] <= i - j;
    x.u = a.fire.psi[i - j] * a.fire.inverse[position];
    x.slope = a.fire.slope[line];
    x.b = x.slope * x.u + a.fire.offset[line];
  }
  return x;
}

}  // namespace bamtrain::kernels
