#pragma once
// Transformer-XL's bias (Dai et al. 2019; DAPE, appendix F), which reads queries and keys beside
// their product:
//
//   b_ij = (<q_i + w, r_d> + <u, k_j>) / sqrt(D),  d = i - j
//
// with a vector r by head and distance, u and w by head. What forms r is of the prior.

#include "ops/mechanisms/operation.h"

namespace bamtrain {

/// The bias adds its own to AttentionGradients::dq and dk too.
struct RelativeBiasGradients {
  Tensor dr;      // (AttentionShape::distances(), H, D) P, by distance as r
  Tensor du, dw;  // (H, D) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dr", x.dr);
    f("du", x.du);
    f("dw", x.dw);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dr", &dr, P, {s.distances(), s.H, s.D});
    add("du", &du, P, {s.H, s.D});
    add("dw", &dw, P, {s.H, s.D});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
};

struct RelativeBias {
  using Gradients = RelativeBiasGradients;
  static constexpr bool kReadsContent = true;
  // (>= past + T, H, D) P, contiguous: by distance. Of attention that is not causal (2n - 1, H, D),
  // n >= T: n - 1 + i - j
  Tensor r;
  Tensor u, w;  // (H, D) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("r", x.r);
    f("u", x.u);
    f("w", x.w);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("r", &r, P, {s.distances(), s.H, s.D});
    add("u", &u, P, {s.H, s.D});
    add("w", &w, P, {s.H, s.D});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  double in_reference(const LogitPlace& p) const;
  void adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const;
};

}  // namespace bamtrain
