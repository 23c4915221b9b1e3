#pragma once
// DAPE (Zheng et al. 2024), data-adaptive positional encoding: f = W2 lrelu(W1 u + c1) + c2 over
// the heads, where u is the input of a MixForm.
//
// Under softmax nothing depends on c2, since it shifts all logits of a row alike. Its gradient is
// rounding error.

#include "core/host_device.h"
#include "mixes/mix.h"

namespace bamtrain {

constexpr double kDapeSlope = 0.01;
constexpr int64_t kDapeLeastHidden = 4, kDapeMostHidden = 64;

/// lrelu(u) and its derivative; at 0 the derivative from below, as in PyTorch.
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
