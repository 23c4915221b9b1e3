#pragma once
// KERPLE: kernels that are conditionally positive definite (Chi et al. 2022; DAPE, section 3).
//
//   logarithmic:  b(d) = -r1 log(1 + r2 d)       r1, r2 >= kFloor
//   power:        b(d) = -r1 d^r2                r1, r2 >= kFloor, r2 <= 2
//
// The optimizer enforces these limits.

#include <cmath>

#include "priors/table_prior.h"

namespace bamtrain {

template <class Real>
struct Kerple {
  static constexpr const char* kName = "kerple";
  static constexpr int kParameters = 2, kValues = 1;  // r1, r2
  static constexpr double kFloor = 0.01;
  static constexpr double kMaxPower = 2;
  enum Form { kLogarithmic, kPower };

  Real r1, r2;
  bool power;

  BAMTRAIN_HD Kerple(const Real* theta, TableHead head)
      : r1(theta[0]), r2(theta[1]), power(head.form == kPower) {}

  BAMTRAIN_HD Real bias(int64_t d) const {
    const Real x = static_cast<Real>(d);
    return power ? -r1 * pow(x, r2) : -r1 * log1p(r2 * x);
  }

  BAMTRAIN_HD void accumulate(Real dz, int64_t d, Real* dtheta) const {
    if (d == 0) return;  // b = 0 there, whatever r1 and r2
    const Real x = static_cast<Real>(d);
    if (power) {
      const Real p = pow(x, r2);
      dtheta[0] -= dz * p;
      dtheta[1] -= dz * r1 * p * log(x);
    } else {
      dtheta[0] -= dz * log1p(r2 * x);
      dtheta[1] -= dz * r1 * x / (1 + r2 * x);
    }
  }
};

}  // namespace bamtrain
