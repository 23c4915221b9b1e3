#pragma once
// A learned scale per head and number of visible keys: t_i = t[h][n_i - 1] (Nakanishi 2025;
// ASEntmax, appendix F.1). Without a window and within one document that is one per position.

#include "core/host_device.h"
#include "scales/scale.h"

namespace bamtrain {

/// Parameter: t (H, lengths). Constant 0: lengths.
struct ByLengthScale {
  BAMTRAIN_HD static int64_t index(const FormulaConstants& c, int64_t h, int64_t n) {
    return h * longest(c) + n - 1;
  }
  static double value(const FormulaConstants& c, const double* const* theta, int64_t h, int64_t n) {
    return theta[0][index(c, h, n)];
  }
  static void accumulate(const FormulaConstants& c, const double* const*, int64_t h, int64_t n,
                         double dt, double* const* dtheta) {
    dtheta[0][index(c, h, n)] += dt;
  }
  BAMTRAIN_HD static int64_t longest(const FormulaConstants& c) {
    return static_cast<int64_t>(c.of[0]);
  }
};

}  // namespace bamtrain
