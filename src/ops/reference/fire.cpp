#include "ops/mechanisms/fire.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/autodiff.h"
#include "ops/reference/place.h"
#include "priors/fire.h"

namespace bamtrain {

using namespace reference;

namespace {

/// The parameters of a layer, one of which may carry the derivative.
struct FireNumbers {
  Dual c, m;
  Duals w1, b1, w2, b2;  // w2: (H, kFireHidden)
  double negative_slope;

  FireNumbers(std::span<const Tensor> theta, double slope) : negative_slope(slope) {
    c = f64(theta[0])[0];
    m = f64(theta[1])[0];
    Duals* const of[] = {&w1, &b1, &w2, &b2};
    for (size_t p = 0; p < 4; ++p) {
      const Tensor& t = theta[2 + p];
      of[p]->assign(f64(t), f64(t) + t.size());
    }
  }
  /// Element i of parameter p, in the order of theta.
  Dual& number(size_t p, int64_t i) {
    Duals* const of[] = {&w1, &b1, &w2, &b2};
    return p == 0 ? c : p == 1 ? m : (*of[p - 2])[static_cast<size_t>(i)];
  }

  Dual psi(double x) const { return log(abs(c) * x + 1); }
  Dual normaliser(double i, double L0) const {
    const Dual threshold = abs(m) * L0;
    const Dual x = i < threshold.x ? threshold : Dual(i);
    return log(abs(c) * x + 1) + 1e-6;
  }
  /// The u > 0 at which hidden units turn on or off, ascending.
  std::vector<double> kinks() const {
    std::vector<double> found;
    for (size_t k = 0; k < w1.size(); ++k) {
      const double kink = -b1[k].x / w1[k].x;
      if (kink > 0 && std::isfinite(kink)) found.push_back(kink);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  /// A u between the kinks s - 1 and s.
  static double inside(const std::vector<double>& kinks, size_t s) {
    const double low = s == 0 ? 0 : kinks[s - 1];
    return s == kinks.size() ? low + 1 : (low + kinks[s]) / 2;
  }
  /// Slope and offset of f of head h, with the units active that are active at `u`; infinite: no
  /// unit is active.
  std::pair<Dual, Dual> line(int64_t h, double u) const {
    Dual slope = 0, offset = b2[static_cast<size_t>(h)];
    for (size_t k = 0; k < w1.size(); ++k) {
      const bool on = std::isfinite(u) && w1[k].x * u + b1[k].x > 0;
      const Dual out = (on ? 1.0 : negative_slope) * w2[static_cast<size_t>(h) * w1.size() + k];
      slope = slope + out * w1[k];
      offset = offset + out * b1[k];
    }
    return {slope, offset};
  }
};

}  // namespace

void FireForward::in_reference() const {
  const int64_t T = tables.psi.shape[0], H = tables.slope.shape[0];
  FireNumbers f(theta, negative_slope);
  const std::vector<double> kinks = f.kinks();
  for (int64_t h = 0; h < H; ++h) {
    for (size_t s = 0; s < kFireSegments; ++s) {
      const int64_t n = h * kFireSegments + static_cast<int64_t>(s);
      const bool there = s <= kinks.size();
      const auto [slope, offset] = f.line(h, there ? FireNumbers::inside(kinks, s) : INFINITY);
      f64(tables.slope)[n] = slope.x;
      f64(tables.offset)[n] = offset.x;
    }
  }
  f.c.d = 1;
  for (int64_t d = 0; d < T; ++d) {
    f64(tables.psi)[d] = f.psi(static_cast<double>(d)).x;
    f64(tables.psi_dc)[d] = f.psi(static_cast<double>(d)).d;
  }
  for (int64_t i = 0; i < T; ++i) {
    const double N = f.normaliser(static_cast<double>(i), L0).x;
    f64(tables.inverse)[i] = 1 / N;
    int64_t d = 0;
    for (size_t k = 0; k < kFireHidden; ++k) {
      while (d < T && (k >= kinks.size() || f64(tables.psi)[d] < kinks[k] * N)) ++d;
      tables.ends.ptr<int32_t>()[i * kFireHidden + static_cast<int64_t>(k)] =
          static_cast<int32_t>(d);
    }
  }
}

void FireBackward::in_reference() const {
  const int64_t B = g.dfire_u.shape[0], H = g.dfire_u.shape[1], T = g.dfire_u.shape[2];
  FireNumbers f(theta, negative_slope);
  const std::vector<double> kinks = f.kinks();
  /// The bias's contribution for constant normalisers: sums of db times slope u + offset.
  const auto of_network = [&] {
    Dual sum;
    for (int64_t h = 0; h < H; ++h) {
      for (size_t s = 0; s <= kinks.size(); ++s) {
        const auto [slope, offset] = f.line(h, FireNumbers::inside(kinks, s));
        const double* db = f64(g.dfire) + 2 * (h * kFireSegments + static_cast<int64_t>(s));
        sum = sum + db[0] * offset + db[1] * slope;
      }
    }
    return sum;
  };
  for (size_t p = 2; p < theta.size(); ++p) {
    for (int64_t i = 0; i < dtheta[p].size(); ++i) {
      f.number(p, i).d = 1;
      f64(dtheta[p])[i] += of_network().d;
      f.number(p, i).d = 0;
    }
  }
  // u = psi / N: du = dpsi / N - u dN / N.
  for (size_t p = 0; p < 2; ++p) {
    if (dtheta[p].size() == 0) continue;
    f.number(p, 0).d = 1;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        const Dual N = f.normaliser(i32(positions)[b * T + i], L0);
        for (int64_t h = 0; h < H; ++h) {
          const int64_t n = (b * H + h) * T + i;
          const double of_psi = p == 0 ? f64(g.dfire_psi)[n] : 0;
          f64(dtheta[p])[0] += (of_psi - f64(g.dfire_u)[n] * N.d) / N.x;
        }
      }
    }
    f.number(p, 0).d = 0;
  }
}

// --- at one logit

namespace {

struct FireLogit {
  double u, psi_dc, slope, b;
  int64_t segment;  // index in (H, kFireSegments)

  FireLogit(const FireBias& bias, const LogitPlace& p) {
    const FireTables& f = bias.tables;
    const int32_t position = i32(bias.positions)[p.batch * p.T + p.later()];
    const int32_t* ends = i32(f.ends) + position * kFireHidden;
    const int64_t d = p.distance();
    segment = p.h * kFireSegments +
              (std::upper_bound(ends, ends + kFireHidden, static_cast<int32_t>(d)) - ends);
    u = f64(f.psi)[d] * f64(f.inverse)[position];
    psi_dc = f64(f.psi_dc)[d];
    slope = f64(f.slope)[segment];
    b = slope * u + f64(f.offset)[segment];
  }
};

}  // namespace

double FireBias::in_reference(const LogitPlace& p) const { return FireLogit(*this, p).b; }

void FireBias::adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const {
  const FireLogit logit(*this, p);
  f64(g.dfire)[2 * logit.segment] += db;
  f64(g.dfire)[2 * logit.segment + 1] += db * logit.u;
  const int64_t of_later = (p.batch * p.H + p.h) * p.T + p.later();
  f64(g.dfire_u)[of_later] += db * logit.slope * logit.u;
  f64(g.dfire_psi)[of_later] += db * logit.slope * logit.psi_dc;
}

}  // namespace bamtrain
