#pragma once
// DAPE (Zheng et al. 2024), data-adaptive positional encoding: f = W2 lrelu(W1 u + c1) + c2 over
// the heads, u what a MixForm reads of them.
//
// Under softmax nothing depends on c2, which moves every logit of a row alike: its gradient is
// rounding.

#include "core/host_device.h"
#include "mixes/mix.h"

namespace bamtrain {

constexpr double kDapeSlope = 0.01;
constexpr int64_t kDapeLeastHidden = 4, kDapeMostHidden = 64;

/// lrelu(u), and its derivative: at 0 that from below, as PyTorch's.
template <class Real>
BAMTRAIN_HD constexpr Real dape_activation(Real u) {
  return u > 0 ? u : static_cast<Real>(kDapeSlope) * u;
}
template <class Real>
BAMTRAIN_HD constexpr Real dape_slope(Real u) {
  return u > 0 ? Real(1) : static_cast<Real>(kDapeSlope);
}

MixInfo dape_mix();

}  // namespace bamtrain
