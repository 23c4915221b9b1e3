#include "ops/mechanisms/alpha.h"

#include "core/element.h"
#include "priors/softplus.h"

namespace bamtrain {

void AlphaForward::on_host(const HostScratch&) const {
  for (int64_t h = 0; h < alphas.size(); ++h) put(alphas, h, 1 + softplus(get(theta, h)));
}

void AlphaBackward::on_host(const HostScratch&) const {
  const int64_t B = dalpha.shape[0], H = dalpha.shape[1], T = dalpha.shape[2];
  for (int64_t h = 0; h < H; ++h) {
    double sum = 0;
    for (int64_t n = 0; n < B * T; ++n) sum += get(dalpha, (n / T * H + h) * T + n % T);
    put(dtheta, h, get(dtheta, h) + sum * sigmoid(get(theta, h)));
  }
}

}  // namespace bamtrain
