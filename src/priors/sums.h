#pragma once
// Formulas of family sums. n_i is S_i, the running sum of a softplus of gates, and
// x = S_j - S_i <= 0. Keys after the query, which causal attention does not see, have x >= 0.

#include "core/host_device.h"

namespace bamtrain {

/// b = -|x|.
struct Difference {
  static constexpr bool kRelative = true;

  template <class Math, class Real>
  BAMTRAIN_EITHER static Real bias(Real row, Real key, Real) {
    const Real x = key - row;
    return x > 0.0f ? -x : x;
  }
  template <class Math, class Real>
  BAMTRAIN_EITHER static Real of_row(Real row, Real key, Real d) {
    return -of_key<Math>(row, key, d);
  }
  template <class Math, class Real>
  BAMTRAIN_EITHER static Real of_key(Real row, Real key, Real) {
    return key - row > 0.0f ? Real{} - 1.0f : Real{} + 1.0f;
  }
};

/// b = -log(1 + x^2). exp(b) = 1 / (1 + x^2) is at most 1, and at least 10^-14 where fp32 resolves
/// x, while exp spans 10^76.
struct LogSquare {
  static constexpr bool kRelative = true;

  template <class Math, class Real>
  BAMTRAIN_EITHER static Real bias(Real row, Real key, Real) {
    const Real x = key - row;
    return -Math::log1p(x, x);
  }
  template <class Math, class Real>
  BAMTRAIN_EITHER static Real of_row(Real row, Real key, Real d) {
    return -of_key<Math>(row, key, d);
  }
  template <class Math, class Real>
  BAMTRAIN_EITHER static Real of_key(Real row, Real key, Real) {
    const Real x = key - row;
    return Math::divide(-2.0f * x, 1.0f + x * x);
  }
  template <class Math, class Real>
  BAMTRAIN_EITHER static Real exponential(Real row, Real key, Real) {
    const Real x = key - row;
    return Math::divide(Real{} + 1.0f, 1.0f + x * x);
  }
};

}  // namespace bamtrain
