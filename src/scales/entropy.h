#pragma once
// Adaptive temperature (Velickovic et al. 2025): t is a function of the entropy H of the row's
// unscaled softmax. Rows that are already sharp keep t = 1. The polynomial was fitted to trained
// models. It is for evaluation only and has no derivative here.

#include "core/host_device.h"
#include "scales/scale.h"

namespace bamtrain {

/// H in nats. NaN gives 1, since the row is NaN with any t.
BAMTRAIN_HD inline double entropy_scale_of(double H) {
  if (!(H > 0.5)) return 1;
  const double t = (((-0.037 * H + 0.481) * H - 2.3) * H + 4.917) * H - 1.791;
  return t > 1 ? t : 1;
}

}  // namespace bamtrain
