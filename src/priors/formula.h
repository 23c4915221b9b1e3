#pragma once
// Biases that a formula makes of one number per token and head,
//
//   b_ij = f(n_i, n_j, d), d = i - j,
//
// of which f may leave out any. A family whose bias is such brings the formula alone: attention on
// every backend, but the reference, is a template of it. NAME.h has, for host and device,
//
//   struct Formula {
//     static constexpr bool kRelative;   f is one of n_j - n_i: numbers of n less an origin do too
//     static constexpr bool kFused;      the fused kernels of CUDA have it (kernels/attention.cuh);
//                                        without them softmax takes the general ones
//     template <class Math, class Real> BAMTRAIN_EITHER static Real
//         bias(Real row, Real key, Real d),
//         of_row(row, key, d), of_key(row, key, d);   db/dn_i, db/dn_j
//         exponential(row, key, d);                   optional: exp(b), where that takes no
//         logarithm
//   };                                                and is a safe factor of exp(z - b)
//
// and, at its end, BAMTRAIN_FORMULAS_OF_name(X): X(form, Formula) for each. Math is what a backend
// computes with:
//
//   log1p(a, b)     log(1 + a b) for a b >= 0
//   divide(a, b)    a / b for b >= 1
//
// Real: float, or a vector of them.

#include "priors/formulas.h"

namespace bamtrain {

enum class Formula {
#define BAMTRAIN_FORM(form, type) form,
  BAMTRAIN_FORMULAS(BAMTRAIN_FORM)
#undef BAMTRAIN_FORM
};

/// f.template operator()<the struct>().
template <class F>
BAMTRAIN_EITHER void with_formula(Formula formula, const F& f) {
  switch (formula) {
#define BAMTRAIN_CASE(form, type) \
  case Formula::form:             \
    return f.template operator()<type>();
    BAMTRAIN_FORMULAS(BAMTRAIN_CASE)
#undef BAMTRAIN_CASE
  }
}

/// See above.
BAMTRAIN_HD constexpr bool is_fused(Formula formula) {
  switch (formula) {
#define BAMTRAIN_CASE(form, type) \
  case Formula::form:             \
    return type::kFused;
    BAMTRAIN_FORMULAS(BAMTRAIN_CASE)
#undef BAMTRAIN_CASE
  }
  return false;
}
BAMTRAIN_HD constexpr bool is_relative(Formula formula) {
  switch (formula) {
#define BAMTRAIN_CASE(form, type) \
  case Formula::form:             \
    return type::kRelative;
    BAMTRAIN_FORMULAS(BAMTRAIN_CASE)
#undef BAMTRAIN_CASE
  }
  return false;
}

}  // namespace bamtrain
