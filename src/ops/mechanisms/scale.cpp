#include "ops/mechanisms/scale.h"

#include <algorithm>
#include <cmath>

#include "core/element.h"
#include "core/parallel.h"
#include "ops/host_scratch.h"
#include "ops/visible_keys.h"
#include "scales/entropy.h"

namespace bamtrain {

namespace {

const LengthKind& kind_of(const ScaleUse& scale) {
  const LengthKind* const kind = scale.info.as<LengthKind>();
  require(kind != nullptr, "a scale of kind length");
  return *kind;
}

}  // namespace

/// t depends only on (h, n): computed once per n, then looked up.
void ScaleForward::on_host(const HostScratch& s) const {
  const int64_t B = scale.shape[0], H = scale.shape[1], T = scale.shape[2];
  const LengthKind& kind = kind_of(use);
  const HostScratch::Pointers p = s.theta_values(theta);
  int64_t fewest = INT64_MAX, most = 0;
  for (int64_t r = 0; r < B * T; ++r) {
    const int64_t n = visible_keys(first_key, last_key, r / T, r % T);
    fewest = std::min(fewest, n);
    most = std::max(most, n);
  }
  require(s.by_length && H <= s.by_length.shape[0] && most < s.by_length.shape[1],
          "a scale no larger than was planned");
  parallel_for(H, [&](int64_t h) {
    double* of_length = s.by_length.ptr<double>() + h * s.by_length.shape[1];
    for (int64_t n = fewest; n <= most; ++n) {
      of_length[n] = h < use.first_head ? 1 : kind.value(use.constants, p.of, h, n);
    }
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        put(scale, (b * H + h) * T + i, of_length[visible_keys(first_key, last_key, b, i)]);
      }
    }
  });
}

/// dt is first summed by n, in order.
void ScaleBackward::on_host(const HostScratch& s) const {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  require(s.by_length && H * (T + 1) <= s.by_length.size(), "a scale no larger than was planned");
  const LengthKind& kind = kind_of(use);
  const HostScratch::Pointers p = s.theta_values(theta), gradients = s.zeros(dtheta.size());
  parallel_for(H - use.first_head, [&](int64_t scaled) {
    const int64_t h = use.first_head + scaled;
    double* of_length = s.by_length.ptr<double>() + h * (T + 1);
    std::fill_n(of_length, T + 1, 0.0);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        of_length[visible_keys(first_key, last_key, b, i)] += get(dscale, (b * H + h) * T + i);
      }
    }
    for (int64_t n = 1; n <= T; ++n) {
      kind.accumulate(use.constants, p.of, h, n, of_length[n], gradients.of);
    }
  });
  s.add_to(dtheta, gradients);
}

void EntropyScale::on_host(const HostScratch&) const {
  const int64_t H = scale.shape[1], T = scale.shape[2];
  parallel_for(scale.shape[0] * H, [&](int64_t n) {
    for (int64_t i = n * T; i < (n + 1) * T; ++i) {
      put(scale, i, n % H < first_head ? 1 : entropy_scale_of(get(entropy, i)));
    }
  });
}

}  // namespace bamtrain
