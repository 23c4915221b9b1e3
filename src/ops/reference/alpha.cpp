#include "ops/mechanisms/alpha.h"

#include "ops/reference/autodiff.h"

namespace bamtrain {

using namespace reference;

void AlphaForward::in_reference() const {
  for (int64_t h = 0; h < alphas.size(); ++h) f64(alphas)[h] = 1 + softplus(Dual(f64(theta)[h])).x;
}

void AlphaBackward::in_reference() const {
  const int64_t H = dalpha.shape[1], T = dalpha.shape[2];
  for (int64_t n = 0; n < dalpha.size(); ++n) {
    const int64_t h = n / T % H;
    f64(dtheta)[h] += f64(dalpha)[n] * softplus(Dual(f64(theta)[h], 1)).d;
  }
}

}  // namespace bamtrain
