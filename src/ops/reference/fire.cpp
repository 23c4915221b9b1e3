#include "ops/mechanisms/fire.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/attention_row.h"
#include "priors/fire.h"

namespace bamtrain {

using namespace reference;

namespace {

/// The parameters of a layer.
struct FireNumbers {
  Vars c, m, w1, b1, w2, b2;  // in the order of theta; w2: (H, kFireHidden)
  double negative_slope;

  FireNumbers(const TensorList& theta, double slope, Tape* tape = nullptr,
              const TensorList& dtheta = {})
      : negative_slope(slope) {
    Vars* const of[] = {&c, &m, &w1, &b1, &w2, &b2};
    for (size_t p = 0; p < theta.size(); ++p) {
      for (int64_t n = 0; n < theta[p].size(); ++n) {
        of[p]->push_back(element(tape, theta[p], n, tape ? dtheta[p] : Tensor(), n));
      }
    }
  }

  Var psi(double x) const { return log(abs(c[0]) * x + 1); }
  Var normaliser(double i, double L0) const {
    const Var threshold = abs(m[0]) * L0;
    const Var x = i < threshold.x ? threshold : Var(i);
    return log(abs(c[0]) * x + 1) + 1e-6;
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
  std::pair<Var, Var> line(int64_t h, double u) const {
    Var slope = 0, offset = b2[static_cast<size_t>(h)];
    for (size_t k = 0; k < w1.size(); ++k) {
      const bool on = std::isfinite(u) && w1[k].x * u + b1[k].x > 0;
      const Var out = (on ? 1.0 : negative_slope) * w2[static_cast<size_t>(h) * w1.size() + k];
      slope = slope + out * w1[k];
      offset = offset + out * b1[k];
    }
    return {slope, offset};
  }
};

}  // namespace

void FireForward::in_reference() const {
  const int64_t T = tables.psi.shape[0], H = tables.slope.shape[0];
  const FireNumbers f(theta, negative_slope);
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
  Tape tape;
  FireNumbers by_c = f;
  for (int64_t d = 0; d < T; ++d) {
    f64(tables.psi_dc)[d] = 0;
    by_c.c[0] = {f.c[0].x, &f64(tables.psi_dc)[d], &tape};
    const Var psi = by_c.psi(static_cast<double>(d));
    f64(tables.psi)[d] = psi.x;
    tape.seed(psi, 1);
  }
  tape.backward();
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
  const int64_t H = g.dfire_u.shape[1], T = g.dfire_u.shape[2];
  Tape tape;
  const FireNumbers f(theta, negative_slope, &tape, dtheta);
  const std::vector<double> kinks = f.kinks();
  for (int64_t h = 0; h < H; ++h) {
    for (size_t s = 0; s <= kinks.size(); ++s) {
      const auto [slope, offset] = f.line(h, FireNumbers::inside(kinks, s));
      const double* db = f64(g.dfire) + 2 * (h * kFireSegments + static_cast<int64_t>(s));
      tape.seed(offset, db[0]);
      tape.seed(slope, db[1]);
    }
  }
  // u = psi / N: du = dpsi / N - u dN / N.
  for (int64_t n = 0; n < g.dfire_u.size(); ++n) {
    const Var N = f.normaliser(i32(positions)[n / T / H * T + n % T], L0);
    tape.seed(N, -f64(g.dfire_u)[n] / N.x);
    tape.seed(f.c[0], f64(g.dfire_psi)[n] / N.x);
  }
  tape.backward();
}

// --- in attention

Vars FireBias::in_reference(const AttentionRow& row, const Gradients& g) const {
  const FireTables& f = tables;
  return row.by_key([&](int64_t j) {
    const int64_t d = row.distance(j), later = row.later(j);
    const int64_t of_later = (row.batch * row.H + row.h) * row.T + later;
    const int32_t position = i32(positions)[row.batch * row.T + later];
    const int32_t* ends = i32(f.ends) + position * kFireHidden;
    const int64_t segment =
        row.h * kFireSegments +
        (std::upper_bound(ends, ends + kFireHidden, static_cast<int32_t>(d)) - ends);
    const Var offset = element(row.tape, f.offset, segment, g.dfire, 2 * segment);
    const Var slope = element(row.tape, f.slope, segment, g.dfire, 2 * segment + 1);
    // dfire_u and dfire_psi are gradients of two numbers, 1 and 0, in u.
    const Var of_u(1, row.tape ? f64(g.dfire_u) + of_later : nullptr, row.tape);
    const Var of_psi(0, row.tape ? f64(g.dfire_psi) + of_later : nullptr, row.tape);
    const double u = f64(f.psi)[d] * f64(f.inverse)[position];
    return slope * (u * of_u + f64(f.psi_dc)[d] * of_psi) + offset;
  });
}

}  // namespace bamtrain
