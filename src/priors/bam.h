#pragma once
// BAM: a generalised Gaussian prior over distance (BAM, appendix C).
//
//   b(d) = -exp(ta) * (| -d - (exp(tm) - exp(-tm)) | + eps)^tb        d = i - j
//
// For tb < 0 the key at distance zero from the location gets a huge negative bias. It is clamped to
// kFloor, far below any logit that a model forms. Where it is clamped, its gradient is zero.

#include <cmath>

#include "priors/table_prior.h"

namespace bamtrain {

template <class Real>
struct Bam {
  static constexpr const char* kName = "bam";
  static constexpr int kParameters = 3, kValues = 1;  // theta_alpha, theta_beta, theta_mu
  static constexpr bool kSigned = true;
  static constexpr double kEps = 1e-5;
  static constexpr double kFloor = -1e4;

  Real amplitude, exponent, location, location_slope;

  BAMTRAIN_HD Bam(const Real* theta, TableHead)
      : amplitude(exp(theta[0])),
        exponent(theta[1]),
        location(exp(theta[2]) - exp(-theta[2])),
        location_slope(exp(theta[2]) + exp(-theta[2])) {}

  BAMTRAIN_HD Real argument(int64_t d) const { return static_cast<Real>(-d) - location; }

  BAMTRAIN_HD Real unbounded(int64_t d) const {
    return -amplitude * pow(fabs(argument(d)) + static_cast<Real>(kEps), exponent);
  }

  BAMTRAIN_HD Real bias(int64_t d) const {
    const Real b = unbounded(d);
    return b > static_cast<Real>(kFloor) ? b : static_cast<Real>(kFloor);
  }

  BAMTRAIN_HD void accumulate(Real dz, int64_t d, Real* dtheta) const {
    const Real b = unbounded(d);
    if (!(b > static_cast<Real>(kFloor))) return;
    const Real x = argument(d);
    const Real base = fabs(x) + static_cast<Real>(kEps);
    const Real sign = x > 0 ? 1 : (x < 0 ? -1 : 0);
    dtheta[0] += dz * b;                                             // db/dta = b
    dtheta[1] += dz * b * log(base);                                 // db/dtb = b log(.)
    dtheta[2] += dz * b * exponent / base * sign * -location_slope;  // chain rule through |.|
  }
};

}  // namespace bamtrain
