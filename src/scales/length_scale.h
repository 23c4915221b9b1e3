#pragma once
// Builds the type-erased hooks of a scale with a few scalars per head from a struct for one head:
//
//   struct S {
//     static constexpr int kParameters;                     // scalars per head
//     S(const Real* theta, const FormulaConstants& c);
//     Real value(int64_t n) const;                          // t of a row that sees n keys
//     void accumulate(Real dt, int64_t n, Real* dtheta) const;  // adds dt * dt_n/dtheta[p]
//   };

#include "core/host_device.h"
#include "scales/scale.h"

namespace bamtrain {

/// Maximum number of scalars per head.
constexpr int kMaxScaleScalars = 2;

template <template <class> class S>
struct LengthScaleHooks {
  static constexpr int kParameters = S<double>::kParameters;
  static_assert(kParameters <= kMaxScaleScalars);

  static S<double> head(const FormulaConstants& c, const double* const* theta, int64_t h) {
    double own[kMaxScaleScalars] = {};
    for (int p = 0; p < kParameters; ++p) own[p] = theta[p][h];
    return S<double>(own, c);
  }

  static double value(const FormulaConstants& c, const double* const* theta, int64_t h, int64_t n) {
    return head(c, theta, h).value(n);
  }

  static void accumulate(const FormulaConstants& c, const double* const* theta, int64_t h,
                         int64_t n, double dt, double* const* dtheta) {
    double own[kMaxScaleScalars] = {};
    head(c, theta, h).accumulate(dt, n, own);
    for (int p = 0; p < kParameters; ++p) dtheta[p][h] += own[p];
  }
};

template <template <class> class S>
LengthKind length_kind() {
  return {LengthScaleHooks<S>::value, LengthScaleHooks<S>::accumulate};
}

}  // namespace bamtrain
