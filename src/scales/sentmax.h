#pragma once
// t_i = delta + beta_h log(n_i + 1)^gamma_h (ASEntmax, section 4). The + 1 keeps t finite for
// n_i = 1 and a negative exponent.

#include <cmath>

#include "scales/length_scale.h"

namespace bamtrain {

template <class Real>
struct Sentmax {
  static constexpr const char* kName = "sentmax";
  static constexpr int kParameters = 2;  // beta, gamma
  Real beta, gamma;
  Real delta;  // constant 0

  BAMTRAIN_HD Sentmax(const Real* theta, const FormulaConstants& c)
      : beta(theta[0]), gamma(theta[1]), delta(static_cast<Real>(c.of[0])) {}
  BAMTRAIN_HD static Real log_length(int64_t n) { return log(static_cast<Real>(n) + 1); }
  BAMTRAIN_HD Real value(int64_t n) const { return delta + beta * pow(log_length(n), gamma); }
  BAMTRAIN_HD void accumulate(Real dt, int64_t n, Real* dtheta) const {
    const Real power = pow(log_length(n), gamma);
    dtheta[0] += dt * power;
    dtheta[1] += dt * beta * power * log(log_length(n));
  }
};

}  // namespace bamtrain
