#pragma once
// Builds the type-erased hooks of a `table` prior from a struct for one head:
//
//   struct P {
//     static constexpr int kParameters;               // scalars per head
//     P(const Real* theta, int64_t h, int64_t H);     // theta[p], p < kParameters
//     Real bias(int64_t d) const;                     // b at distance d
//     void accumulate(Real dz, int64_t d, Real* dtheta) const;  // adds dz * db/dtheta[p]
//   };

#include "priors/prior.h"

namespace bamtrain {

template <template <class> class P>
struct TableHooks {
  static constexpr int kMax = 8;
  static_assert(P<double>::kParameters <= kMax);

  static P<double> head(const double* const* theta, int64_t h, int64_t H) {
    double own[kMax] = {};
    for (int p = 0; p < P<double>::kParameters; ++p) own[p] = theta[p][h];
    return P<double>(own, h, H);
  }

  static void table(const double* const* theta, int64_t H, int64_t T, double* table) {
    for (int64_t h = 0; h < H; ++h) {
      const P<double> prior = head(theta, h, H);
      for (int64_t d = 0; d < T; ++d) table[h * T + d] = prior.bias(d);
    }
  }

  static void table_adjoint(const double* const* theta, int64_t H, int64_t T, const double* dtable,
                            double* const* dtheta) {
    for (int64_t h = 0; h < H; ++h) {
      const P<double> prior = head(theta, h, H);
      double own[kMax] = {};
      for (int64_t d = 0; d < T; ++d) prior.accumulate(dtable[h * T + d], d, own);
      for (int p = 0; p < P<double>::kParameters; ++p) dtheta[p][h] += own[p];
    }
  }
};

}  // namespace bamtrain
