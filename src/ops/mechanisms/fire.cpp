#include "ops/mechanisms/fire.h"

#include "core/element.h"
#include "core/parallel.h"
#include "ops/host_scratch.h"
#include "priors/fire.h"

namespace bamtrain {

namespace {

/// theta in registry order.
FireParameters fire_parameters(const double* const* theta, int64_t H, double L0,
                               double negative_slope) {
  return {theta[2], theta[3], theta[4], theta[5], *theta[0], *theta[1], H, L0, negative_slope};
}

}  // namespace

void FireForward::on_host(const HostScratch& s) const {
  const int64_t T = tables.psi.shape[0], H = tables.slope.shape[0];
  const HostScratch::Pointers values = s.theta_values(theta);
  const FireParameters p = fire_parameters(values.of, H, L0, negative_slope);
  const FireSegments f(p);
  for (int64_t h = 0; h < H; ++h) {
    for (int n = 0; n < kFireSegments; ++n) {
      const FireLine line = f.line(p, h, n);
      put(tables.slope, h * kFireSegments + n, line.slope);
      put(tables.offset, h * kFireSegments + n, line.offset);
    }
  }
  parallel_ranges(T, 256, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      put(tables.psi, t, fire_psi(p.c, static_cast<double>(t)));
      put(tables.psi_dc, t, fire_psi_dc(p.c, static_cast<double>(t)));
      const FireNormalizer row(p, t);
      put(tables.inverse, t, 1 / row.N);
      for (int k = 0; k < kFireHidden; ++k) {
        tables.ends.ptr<int32_t>()[t * kFireHidden + k] = fire_end(p, f.kinks[k], row.N, T);
      }
    }
  });
}

void FireBackward::on_host(const HostScratch& s) const {
  const int64_t B = g.dfire_u.shape[0], H = g.dfire_u.shape[1], T = g.dfire_u.shape[2];
  const HostScratch::Pointers values = s.theta_values(theta), gradients = s.zeros(dtheta.size());
  const FireParameters p = fire_parameters(values.of, H, L0, negative_slope);
  const FireSegments f(p);
  fire_adjoint({gradients.of[2], gradients.of[3], gradients.of[4], gradients.of[5]}, p, f,
               g.dfire.ptr<double>());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < T; ++i) {
      double of_u = 0, of_psi = 0;
      for (int64_t h = 0; h < H; ++h) {
        of_u += get(g.dfire_u, (b * H + h) * T + i);
        of_psi += get(g.dfire_psi, (b * H + h) * T + i);
      }
      const FireNormalizer row(p, positions.ptr<int32_t>()[b * T + i]);
      *gradients.of[0] += (of_psi - of_u * row.dc) / row.N;
      *gradients.of[1] -= of_u * row.dm / row.N;
    }
  }
  s.add_to(dtheta, gradients);
}

}  // namespace bamtrain
