#pragma once
// alpha-entmax (Peters et al. 2019; ASEntmax, section 2):
//
//   p = [(alpha - 1) z - tau]_+^(1/(alpha - 1)),   tau such that p sums to 1.
//
// With a = alpha - 1, m the largest logit, w its weight and
//
//   c_j = a (m - z_j) >= 0,   delta = w^a = a m - tau,   p_j = w [1 - c_j / delta]_+^(1/a):
//
// w lies in [1/n, 1] for n keys and any alpha, while delta = n^-a would underflow fp32 (2^-252 for
// 16 equal logits at alpha 64).
//
// The adjoint: dz = u (dP - D), D = sum u dP / sum u, u = p^(2 - alpha) on nonzero keys. If
// alpha > 2, u is unbounded. Up to kPowerAlpha, p is clamped to at least kSmallestWeight, so u is
// at most 1e-6^(2 - alpha). Above it, x = p^a is clamped to at least kSmallestRoot, so u is at most
// 1e7. Gradients at clamped keys are approximate.
//
// The adjoint of alpha, with z held fixed and h = -p log p:
//
//   dalpha = sum_i (<p, dP> - D) / a^2 + (<h, dP> - D sum_j h_j) / a
//
// The two parts cancel near alpha 1. With p = u e^y, y = a log p, and sum_j u (dP - D) = 0 it is
//
//   dalpha = sum_i sum_j u_j (dP_j - D) g(y_j) / a^2,   g(y) = e^y (1 - y) - 1
//
// The second form is used up to alpha 2; above, where u is unbounded, the first. A learned alpha is
// 1 + softplus(theta), with one theta per head.
//
// AttentionSaved: level is m; threshold is w, which determines tau.

#include "normalizers/traits.h"

namespace bamtrain {

struct NormalizerInfo;

struct Entmax {
  BAMTRAIN_HD static constexpr NormalizerTraits traits() {
    return {.threshold = true, .dense = false};
  }
  static NormalizerInfo info();

  static constexpr double kLeastAlpha = 1.001, kMostAlpha = 64;
  static constexpr double kPowerAlpha = 8, kSmallestWeight = 1e-6, kSmallestRoot = 1e-7;

  /// Whether dalpha uses g, the second form.
  BAMTRAIN_HD static constexpr bool takes_slopes(float a) { return a <= 1; }
  /// For y above this, near_zero(y) equals g(y) to fp32 rounding.
  static constexpr float kNearZero = -0.5f;
  /// The series of g; Real: float, or a vector of them.
  template <class Real>
  BAMTRAIN_EITHER static Real near_zero(Real y) {
    const Real rest = 1.0f / 30 + y * (1.0f / 144 + y * (1.0f / 840 + y * (1.0f / 5760)));
    return -y * y * (0.5f + y * (1.0f / 3 + y * (1.0f / 8 + y * rest)));
  }
};

}  // namespace bamtrain
