#pragma once
// b of one logit, in every form of BiasInputs, and what it gives to its query: for the plain
// kernels, which keep nothing between logits.

#include "attention.h"
#include "device.cuh"
#include "reductions.cuh"

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

/// What a logit's bias gives back, from db: the gradients with respect to x and to u; and u.
struct BiasGradient {
  float dx = 0, du = 0, u = 0;

  BiasGradient() = default;
  BAMTRAIN_DEVICE BiasGradient(const Bias& bias, float db)
      : dx(db * bias.derivative), du(db * bias.slope), u(bias.u) {}
};

/// What the logits of a row give to its query.
struct QueryBias {
  float dx = 0, of_u = 0, of_psi = 0;

  /// Of the key at distance d.
  template <class A>
  BAMTRAIN_DEVICE void add(const AttentionInputs<A>& a, const BiasGradient& x, int d) {
    dx += x.dx;
    if (a.fire.psi == nullptr) return;
    of_u += x.du * x.u;
    of_psi += x.du * a.fire.psi_dc[d];
  }
  BAMTRAIN_DEVICE void join() {
    dx = warp_sum(dx);
    of_u = warp_sum(of_u);
    of_psi = warp_sum(of_psi);
  }
  /// At `row` of (B, H, T). `beside`: what dsums holds there is of a key, and stays.
  template <class A>
  BAMTRAIN_DEVICE void store(const AttentionBackward<A>& g, int64_t row, bool beside) const {
    if (g.in.sums != nullptr) g.dsums[row] = beside ? g.dsums[row] - dx : -dx;
    if (g.in.fire.psi == nullptr) return;
    g.dfire_u[row] = of_u;
    g.dfire_psi[row] = of_psi;
  }
};

}  // namespace bamtrain::kernels
