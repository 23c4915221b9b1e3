#pragma once
// ALiBi: b(d) = -m_h d with fixed slopes (Press et al. 2022). In bidirectional attention
//
//   b(d) = -m_h (d - asymmetry)  for keys before the query, d = i - j > 0
//   b(d) = -m_h |d|              for the others
//
// so that the bias tells the two sides of a query apart (Ruoss et al. 2023; their code uses 0.5).

#include <cmath>

#include "priors/table_prior.h"

namespace bamtrain {

/// Slope of head h (0-based) of H: 2^(-8 (h + 1) / H). If H is not a power of two: the slopes of
/// the largest power of two P below H, then every second slope of 2 P heads.
BAMTRAIN_HD inline double alibi_slope(int64_t h, int64_t H) {
  int64_t P = 1;
  while (P * 2 <= H) P *= 2;
  if (h < P) return pow(2.0, -8.0 * static_cast<double>(h + 1) / static_cast<double>(P));
  return pow(2.0, -8.0 * static_cast<double>(2 * (h - P) + 1) / static_cast<double>(2 * P));
}

template <class Real>
struct Alibi {
  static constexpr const char* kName = "alibi";
  static constexpr int kParameters = 0, kValues = 1;
  static constexpr bool kSigned = true;
  Real slope, asymmetry;

  BAMTRAIN_HD Alibi(const Real*, TableHead head)
      : slope(static_cast<Real>(alibi_slope(head.h, head.H))),
        asymmetry(static_cast<Real>(head.asymmetry)) {}
  BAMTRAIN_HD Real bias(int64_t d) const {
    return -slope * (d > 0 ? static_cast<Real>(d) - asymmetry : static_cast<Real>(-d));
  }
  BAMTRAIN_HD void accumulate(Real, int64_t, Real*) const {}  // nothing is trained
};

}  // namespace bamtrain
