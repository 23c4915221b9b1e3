#pragma once
// The bias of contextual position encoding (Golovneva et al. 2024; DAPE, appendix F). A key's
// position is the sum of the gates between it and the query, computed from the row's own scores:
//
//   g_ij = sigmoid(s_ij),  p_ij = min(sum of g_ik over k = j .. i, n - 1),  b_ij = <q_i, E[p_ij]>,
//
// E is linear between its n positions. The logit scale applies to neither s nor q here. At an
// integer count the slope of E is the one to the right. It is 0 at the last position, so gates get
// no gradient from capped counts.

#include "ops/mechanisms/operation.h"

namespace bamtrain {

/// The bias also adds its gradients to AttentionGradients::dq and dk.
struct ContextualBiasGradients {
  Tensor dpositions;  // (D, n) P

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dpositions", &dpositions, P, {s.D, s.content_columns});
  }
  static void check_on_cuda(const WorkspaceShape& w);
  void on_cuda(kernels::BiasOutputs& g) const;
};

struct ContextualBias {
  using Gradients = ContextualBiasGradients;
  static constexpr bool kReadsContent = true;
  Tensor positions;  // (D, n) P, contiguous: E

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("positions", &positions, P, {s.D, s.content_columns});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  autodiff::Vars in_reference(const AttentionRow& row, const Gradients& g) const;
};

}  // namespace bamtrain
