#pragma once
// Biases computed by a formula from one number per token and head,
//
//   b_ij = f(n_i, n_j, d), d = i - j,
//
// where f may ignore any argument. Such a family provides only its formula: attention is a template
// of it on every backend except the reference. NAME.h has, for host and device,
//
//   struct Formula {
//     static constexpr bool kRelative;   f depends on n_j - n_i only: an origin may be subtracted
//     template <class Math, class Real> BAMTRAIN_EITHER static Real
//         bias(Real row, Real key, Real d),
//         of_row(row, key, d), of_key(row, key, d);   db/dn_i, db/dn_j
//         exponential(row, key, d);                   optional: exp(b), where that needs no
//                                                     logarithm and is a safe factor of exp(z - b)
//   };
//
// and a line in Formulas below. Math is the arithmetic of a backend:
//
//   log1p(a, b)     log(1 + a b) for a b >= 0
//   divide(a, b)    a / b for b >= 1
//
// Real: float, or a vector of them.

#include "core/type_list.h"
#include "priors/sums.h"

namespace bamtrain {

enum class Formula { difference, log_square };

/// In the order of Formula.
using Formulas = TypeList<Difference, LogSquare>;

template <class... Of, class F>
BAMTRAIN_EITHER void with_formula_in(TypeList<Of...>, Formula formula, const F& f) {
  int n = 0;
  (void)((n++ == static_cast<int>(formula) && (f.template operator()<Of>(), true)) || ...);
}
/// f.template operator()<the struct>().
template <class F>
BAMTRAIN_EITHER void with_formula(Formula formula, const F& f) {
  with_formula_in(Formulas(), formula, f);
}

template <class... Of>
BAMTRAIN_HD constexpr bool is_relative_in(TypeList<Of...>, Formula formula) {
  int n = 0;
  return ((n++ == static_cast<int>(formula) && Of::kRelative) || ...);
}
/// kRelative of a formula.
BAMTRAIN_HD constexpr bool is_relative(Formula formula) {
  return is_relative_in(Formulas(), formula);
}

}  // namespace bamtrain
