#include "ops/mechanisms/sums.h"

#include "core/element.h"
#include "core/parallel.h"
#include "ops/gates.h"
#include "priors/softplus.h"

namespace bamtrain {

void SumsForward::on_host(const HostScratch&) const {
  const int64_t H = sums.shape[1], T = sums.shape[2];
  parallel_for(sums.shape[0] * H, [&](int64_t n) {
    const int64_t b = n / H, h = n % H;
    double* S = sums.ptr<double>() + b * sums.stride[0] + h * sums.stride[1];
    double total = start(b, h);
    for (int64_t t = 0; t < T; ++t) {
      total += softplus(get(gates, gate_at(gates, b, t, h)) + get(bias, h));
      S[t] = total;
    }
  });
}

void SumsBackward::on_host(const HostScratch&) const {
  const int64_t B = dsums.shape[0], H = dsums.shape[1], T = dsums.shape[2];
  parallel_for(H, [&](int64_t h) {
    double of_bias = 0;
    for (int64_t b = 0; b < B; ++b) {
      double du = 0;
      for (int64_t t = T - 1; t >= 0; --t) {
        du += get(dsums, (b * H + h) * T + t);
        const double d = du * sigmoid(get(gates, gate_at(gates, b, t, h)) + get(bias, h));
        put(dgates, gate_at(dgates, b, t, h), d);
        of_bias += d;
      }
    }
    put(dbias, h, get(dbias, h) + of_bias);
  });
}

}  // namespace bamtrain
