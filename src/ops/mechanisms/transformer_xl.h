#pragma once
// Transformer-XL's bias (Dai et al. 2019; DAPE, appendix F). It reads queries and keys beyond their
// product:
//
//   b_ij = (<q_i + w, r_d> + <u, k_j>) / sqrt(D),  d = i - j
//
// with a vector r per head and distance, and u and w per head. The prior computes r.

#include "ops/mechanisms/operation.h"

namespace bamtrain {

/// The bias also adds its gradients to AttentionGradients::dq and dk.
struct RelativeBiasGradients {
  Tensor dr;      // (AttentionShape::distances(), H, D) P, indexed as r
  Tensor du, dw;  // (H, D) P

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
  // (>= past + T, H, D) P, contiguous, indexed by distance. If attention is not causal: (2n - 1, H,
  // D), n >= T, indexed by n - 1 + i - j
  Tensor r;
  Tensor u, w;  // (H, D) P

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("r", &r, P, {s.distances(), s.H, s.D});
    add("u", &u, P, {s.H, s.D});
    add("w", &w, P, {s.H, s.D});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  autodiff::Vars in_reference(const AttentionRow& row, const Gradients& g) const;
};

}  // namespace bamtrain
