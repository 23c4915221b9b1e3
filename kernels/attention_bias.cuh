#pragma once
// b of one logit, in every form of BiasInputs, and what it gives to its query: for the plain
// kernels, which keep nothing between logits.

#include "attention.h"
#include "device.cuh"
#include "reductions.cuh"

namespace bamtrain::kernels {

/// What formulas compute with.
struct PlainMath {
  BAMTRAIN_DEVICE static float log1p(float a, float b) { return logf(1.0f + a * b); }
  BAMTRAIN_DEVICE static float divide(float a, float b) { return a / b; }
};

/// b, its derivatives with respect to the numbers of row and key, and of fire db/du and u.
struct Bias {
  float b = 0, of_row = 0, of_key = 0, slope = 0, u = 0;
};

BAMTRAIN_DEVICE int distance(int i, int j) { return i > j ? i - j : j - i; }

/// Where query i and key j of sequence b lie on the lines of fire: the same for all heads.
struct FirePoint {
  int segment = 0;
  float u = 0;

  template <class A>
  BAMTRAIN_DEVICE FirePoint(const AttentionInputs<A>& a, int b, int i, int j) {
    if (a.fire.psi == nullptr) return;
    const int d = distance(i, j);
    const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + (i > j ? i : j)];
    const int32_t* const ends = a.fire.ends + position * kFireHidden;
    // How many of them, which ascend, are no more than the distance.
    static_assert(kFireHidden == 32);
    BAMTRAIN_UNROLL
    for (int step = kFireHidden / 2; step > 0; step /= 2) {
      if (ends[segment + step - 1] <= d) segment += step;
    }
    if (ends[segment] <= d) ++segment;
    u = a.fire.psi[d] * a.fire.inverse[position];
  }
};

/// The prior's own at (h, i, j) of sequence b.
template <class A>
BAMTRAIN_DEVICE Bias prior_bias_of(const AttentionInputs<A>& a, int b, int h, int i, int j,
                                   const FirePoint& of_fire) {
  Bias x;
  if (a.table != nullptr) x.b = a.table[h * a.table_head + i - j];
  if (a.numbers != nullptr) {
    const double* const n = a.numbers_of(b, h);
    with_formula(a.formula, [&]<class Of>() {
      const float row = Of::kRelative ? 0.0f : static_cast<float>(n[i]);
      const auto key = static_cast<float>(Of::kRelative ? n[j] - n[i] : n[j]);
      const auto d = static_cast<float>(distance(i, j));
      x.b = Of::template bias<PlainMath>(row, key, d);
      x.of_row = Of::template of_row<PlainMath>(row, key, d);
      x.of_key = Of::template of_key<PlainMath>(row, key, d);
    });
  }
  if (a.fire.psi != nullptr) {
    const int line = h * kFireSegments + of_fire.segment;
    x.u = of_fire.u;
    x.slope = a.fire.slope[line];
    x.b = x.slope * x.u + a.fire.offset[line];
  }
  return x;
}

/// What a logit has of it, or what was formed.
template <class A>
BAMTRAIN_DEVICE Bias bias_of(const AttentionInputs<A>& a, int b, int h, int i, int j) {
  if (a.formed.b == nullptr) return prior_bias_of(a, b, h, i, j, FirePoint(a, b, i, j));
  Bias x;
  x.b = a.formed.b[a.formed.row(static_cast<int64_t>(b) * a.H + h, i) + j];
  return x;
}

/// What a logit's bias gives back, from db: the gradients with respect to both numbers and to u;
/// and u.
struct BiasGradient {
  float to_row = 0, to_key = 0, du = 0, u = 0;

  BiasGradient() = default;
  BAMTRAIN_DEVICE BiasGradient(const Bias& bias, float db)
      : to_row(db * bias.of_row), to_key(db * bias.of_key), du(db * bias.slope), u(bias.u) {}
};

/// What logits give to the token of which they are sums of fire, the later of the two.
struct FireSums {
  float of_u = 0, of_psi = 0;

  template <class A>
  BAMTRAIN_DEVICE void add(const AttentionInputs<A>& a, const BiasGradient& x, int d) {
    if (a.fire.psi == nullptr) return;
    of_u += x.du * x.u;
    of_psi += x.du * a.fire.psi_dc[d];
  }
  BAMTRAIN_DEVICE void join() {
    of_u = warp_sum(of_u);
    of_psi = warp_sum(of_psi);
  }
};

/// What the logits of a row give to its query.
struct QueryBias {
  float of_number = 0;
  FireSums of_fire;

  /// Of query i and key j.
  template <class A>
  BAMTRAIN_DEVICE void add(const AttentionInputs<A>& a, const BiasGradient& x, int i, int j) {
    of_number += x.to_row;
    if (j <= i) of_fire.add(a, x, i - j);
  }
  BAMTRAIN_DEVICE void join() {
    of_number = warp_sum(of_number);
    of_fire.join();
  }
  /// At `row` of (B, H, T). `beside`: what dnumbers holds there is of a key, and stays.
  BAMTRAIN_DEVICE void store(const BiasInputs& a, const BiasOutputs& g, int64_t row,
                             bool beside) const {
    if (a.numbers != nullptr) {
      g.dnumbers[row] = beside ? g.dnumbers[row] + of_number : of_number;
    }
    if (a.fire.psi == nullptr) return;
    g.dfire_u[row] = of_fire.of_u;
    g.dfire_psi[row] = of_fire.of_psi;
  }
};

}  // namespace bamtrain::kernels
