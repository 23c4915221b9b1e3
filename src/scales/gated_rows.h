#pragma once
// Values per row that a rule computes from gates. Gates are products of the attention's input with
// one column each per head. For token t of head h:
//
//   value(u, n), u_k = gate k of (t, h), plus bias k of h if there are biases; n visible keys
//
// A logit scale (adaptive.h) or a family of priors provides only the rule. The operations of
// ops/mechanisms/gated_rows.h are templates of it on every backend except the reference. NAME.h,
// here or in priors, has
//
//   struct Rule {
//     static constexpr int kGates;                         at most kMostGates
//     BAMTRAIN_HD explicit Rule(const FormulaConstants&);
//     BAMTRAIN_HD double value(const double* u, int64_t n) const;
//     BAMTRAIN_HD void adjoint(double d, const double* u, int64_t n, double* du) const;
//   };                                                     du_k = d times the derivative
//
// and a line in GatedRules below.

#include "core/type_list.h"
#include "scales/adaptive.h"

namespace bamtrain {

constexpr int kMostGates = 2;

enum class GatedRule { adaptive };

/// In the order of GatedRule.
using GatedRules = TypeList<Adaptive>;

/// f.template operator()<the struct>().
template <class F>
void with_rule(GatedRule rule, const F& f) {
  with_type(GatedRules(), static_cast<int>(rule), f);
}

}  // namespace bamtrain
