#pragma once
// T5's relative bias (Raffel et al. 2020), causal: a learned number per bucket of distances, times
// a gain. The gain is 1, or sqrt(D) where the table is added before the logits' 1 / sqrt(D)
// (DAPE's code).
//
// Each distance below 16 has its own bucket. Distances up to 128 share 16 buckets of equal width in
// log d; the last bucket also holds all larger distances.

#include <cmath>

#include "priors/table_prior.h"

namespace bamtrain {

template <class Real>
struct T5 {
  static constexpr const char* kName = "t5";
  static constexpr int kBuckets = 32, kExact = 16, kFarthest = 128;
  static constexpr int kParameters = 1, kValues = kBuckets;  // bias

  Real values[kBuckets], gain;

  BAMTRAIN_HD T5(const Real* theta, TableHead head) : gain(static_cast<Real>(head.gain)) {
    for (int k = 0; k < kBuckets; ++k) values[k] = theta[k];
  }

  BAMTRAIN_HD static int bucket(int64_t d) {
    if (d < kExact) return static_cast<int>(d);
    if (d >= kFarthest) return kBuckets - 1;
    // The value is an integer only at d = 16, where the logarithm is exact, and at d = 128, which
    // returns above. So rounding never decides.
    const double share =
        log(static_cast<double>(d) / kExact) / log(static_cast<double>(kFarthest) / kExact);
    return kExact + static_cast<int>(share * (kBuckets - kExact));
  }

  BAMTRAIN_HD Real bias(int64_t d) const { return gain * values[bucket(d)]; }
  BAMTRAIN_HD void accumulate(Real dz, int64_t d, Real* dtheta) const {
    dtheta[bucket(d)] += gain * dz;
  }
};

}  // namespace bamtrain
