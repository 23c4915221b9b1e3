#pragma once
// alpha-entmax (Peters et al. 2019; ASEntmax, section 2): p = [(alpha - 1) z - tau]_+^(1/(alpha -
// 1)) with tau such that p sums to 1. Written with a = alpha - 1, m the largest logit, w its weight
// and
//
//   c_j = a (m - z_j) >= 0,   delta = w^a = a m - tau,   p_j = w [1 - c_j / delta]_+^(1/a):
//
// w lies in [1/n, 1] for n keys, whatever alpha, where delta = n^-a would leave fp32 (2^-252 for 16
// equal logits at alpha 64).
//
// The adjoint: dz = u (dP - D), D = sum u dP / sum u, u = p^(2 - alpha) on the support. For alpha >
// 2 u has no bound: up to kPowerAlpha p is taken as kSmallestWeight at least, so that u is at most
// 1e-6^(2 - alpha); above it x = p^a as kSmallestRoot, so that u is at most 1e7. Gradients at such
// keys are approximate.
// Of alpha, with z held fixed and h = -p log p:
//
//   dalpha = sum_i (<p, dP> - D) / a^2 + (<h, dP> - D sum_j h_j) / a
//
// A learned alpha is 1 + softplus(theta), one theta per head.
//
// level: m. threshold: w, which tells tau.

#include "normalizers/traits.h"

namespace bamtrain {

BAMTRAIN_HD constexpr NormalizerTraits entmax_traits() {
  return {.threshold = true, .dense = false};
}

struct Entmax {
  static constexpr double kLeastAlpha = 1.001, kMostAlpha = 64;
  static constexpr double kPowerAlpha = 8, kSmallestWeight = 1e-6, kSmallestRoot = 1e-7;
};

struct NormalizerInfo;
NormalizerInfo entmax_normalizer();

}  // namespace bamtrain
