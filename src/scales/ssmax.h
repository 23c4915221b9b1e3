#pragma once
// Scalable softmax: t_i = s_h log n_i (Nakanishi 2025; BAM, section 2), or delta + s_h log(n_i + 1)
// (ASEntmax). Since log 1 = 0, a row that sees one key has t = delta; its softmax is 1 for any
// logit.

#include <cmath>

#include "scales/length_scale.h"

namespace bamtrain {

template <class Real>
struct Ssmax {
  static constexpr const char* kName = "ssmax";
  static constexpr int kParameters = 1;  // s
  Real s;
  Real offset, delta;  // constants 0 and 1

  BAMTRAIN_HD Ssmax(const Real* theta, const FormulaConstants& c)
      : s(theta[0]), offset(static_cast<Real>(c.of[0])), delta(static_cast<Real>(c.of[1])) {}
  BAMTRAIN_HD Real log_length(int64_t n) const { return log(static_cast<Real>(n) + offset); }
  BAMTRAIN_HD Real value(int64_t n) const { return delta + s * log_length(n); }
  BAMTRAIN_HD void accumulate(Real dt, int64_t n, Real* dtheta) const {
    dtheta[0] += dt * log_length(n);
  }
};

}  // namespace bamtrain
