#pragma once
// One temperature for all rows: t_i = t.

#include "scales/length_scale.h"

namespace bamtrain {

template <class Real>
struct ConstantScale {
  static constexpr const char* kName = "constant";
  static constexpr int kParameters = 0;
  Real t;  // constant 0

  BAMTRAIN_HD ConstantScale(const Real*, const FormulaConstants& c)
      : t(static_cast<Real>(c.of[0])) {}
  BAMTRAIN_HD Real value(int64_t) const { return t; }
  BAMTRAIN_HD void accumulate(Real, int64_t, Real*) const {}
};

}  // namespace bamtrain
