#pragma once
// Rotary position embedding (Su et al. 2021), half-split pairing as in Llama: channel c < D/2 is
// paired with c + D/2 and rotated by position * theta^(-2c/D).

#include <cmath>

#include "priors/prior.h"

namespace bamtrain {

/// Angle per unit of position of pair c of D/2.
BAMTRAIN_HD inline double rope_inverse_frequency(double theta, int64_t c, int64_t D) {
  return pow(theta, -2.0 * static_cast<double>(c) / static_cast<double>(D));
}

/// Rotates the pair (a, b) by the angle whose cosine and sine are given.
template <class Real>
BAMTRAIN_HD inline void rope_rotate(Real& a, Real& b, Real cosine, Real sine) {
  const Real x = a * cosine - b * sine;
  const Real y = b * cosine + a * sine;
  a = x;
  b = y;
}

/// The adjoint of rope_rotate: the rotation by the opposite angle.
template <class Real>
BAMTRAIN_HD inline void rope_rotate_adjoint(Real& da, Real& db, Real cosine, Real sine) {
  rope_rotate(da, db, cosine, -sine);
}

}  // namespace bamtrain
