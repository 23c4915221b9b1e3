#include "ops/mechanisms/alpha.h"

#include "ops/reference/autodiff.h"

namespace bamtrain {

using namespace reference;

void AlphaForward::in_reference() const {
  for (int64_t h = 0; h < alphas.size(); ++h) f64(alphas)[h] = 1 + softplus(Var(f64(theta)[h])).x;
}

void AlphaBackward::in_reference() const {
  const int64_t H = dalpha.shape[1], T = dalpha.shape[2];
  Tape tape;
  for (int64_t n = 0; n < dalpha.size(); ++n) {
    const int64_t h = n / T % H;
    tape.seed(1 + softplus(element(&tape, theta, h, dtheta, h)), f64(dalpha)[n]);
  }
  tape.backward();
}

}  // namespace bamtrain
