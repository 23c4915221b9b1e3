#pragma once
// Biases computed by a formula from one number per token (priors/formula.h): what attention reads.
// The families of priors compute the numbers.

#include "ops/mechanisms/operation.h"
#include "priors/formula.h"

namespace bamtrain {

/// The gradient with respect to n_t, as a key and as a query. With Formula::difference the query's
/// part is the row's sum of -db. It is 0 except for the error that the rounding of `out` leaves.
/// The keys' part contains the same error, so sums of both are free of it.
struct TokenBiasGradients {
  Tensor dnumbers;  // (B, H, T) P

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dnumbers", &dnumbers, P, {s.B, s.H, s.T});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
};
/// b_ij as a function of n_i and n_j.
struct TokenBias {
  using Gradients = TokenBiasGradients;
  Tensor numbers;  // (B, H, past + T) f64: n
  Formula formula = Formula::difference;

  template <class Add>
  void plan(const AttentionShape& s, Dtype, Add&& add) {
    add("numbers", &numbers, Dtype::f64, {s.B, s.H, s.past + s.T});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  autodiff::Vars in_reference(const AttentionRow& row, const Gradients& g) const;
};

}  // namespace bamtrain
