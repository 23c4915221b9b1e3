// FIRE's piecewise linear form, compared with its network, evaluated one logit at a time.

#include "priors/fire.h"

#include <cmath>
#include <vector>

#include "catch.h"
#include "core/rng.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kH = 3, kT = 40;

/// All parameters in one list: w1, b1, w2, b2, c, m.
struct Fire {
  std::vector<double> x;

  explicit Fire(const std::string& stream) {
    const Rng rng(3, stream);
    for (size_t n = 0; n < 2 * kFireHidden + kH * kFireHidden + kH; ++n) {
      x.push_back(rng.normal(n));
    }
    x.push_back(0.3);   // c
    x.push_back(-1.2);  // m
  }
  FireParameters parameters() const {
    const double* p = x.data();
    return {p,
            p + kFireHidden,
            p + 2 * kFireHidden,
            p + (2 + kH) * kFireHidden,
            x[x.size() - 2],
            x.back(),
            kH,
            10.3};
  }
  /// f of head h.
  double network(int64_t h, double u) const {
    const FireParameters p = parameters();
    double sum = p.b2[h];
    for (int k = 0; k < kFireHidden; ++k) {
      sum += p.w2[h * kFireHidden + k] * std::max(0.0, p.w1[k] * u + p.b1[k]);
    }
    return sum;
  }
  /// The bias of head h at position i and distance d, by the formula.
  double bias(int64_t h, int64_t i, int64_t d) const {
    const FireParameters p = parameters();
    const auto psi = [&](double y) { return std::log(std::abs(p.c) * y + 1); };
    const double x_i = std::max(static_cast<double>(i), std::abs(p.m) * p.L0);
    return network(h, psi(static_cast<double>(d)) / (psi(x_i) + 1e-6));
  }
};

/// The db that a test uses for the bias of head h, position i, distance d.
double weight(int64_t h, int64_t i, int64_t d) {
  return Rng(5, "db").normal(static_cast<uint64_t>((h * kT + i) * kT + d));
}

double weighted_sum(const Fire& f) {
  double sum = 0;
  for (int64_t h = 0; h < kH; ++h) {
    for (int64_t i = 0; i < kT; ++i) {
      for (int64_t d = 0; d <= i; ++d) sum += weight(h, i, d) * f.bias(h, i, d);
    }
  }
  return sum;
}

/// The gradient of weighted_sum, computed with segments.
std::vector<double> gradient(const Fire& f) {
  const FireParameters p = f.parameters();
  const FireSegments segments(p);
  std::vector<double> sums(2 * kH * kFireSegments, 0.0), g(f.x.size(), 0.0);
  double& dc = g[g.size() - 2];
  double& dm = g.back();
  for (int64_t i = 0; i < kT; ++i) {
    const FireNormalizer row(p, i);
    double of_u = 0, of_psi = 0;  // R_i, Q_i
    for (int64_t h = 0; h < kH; ++h) {
      for (int64_t d = 0; d <= i; ++d) {
        const auto x = static_cast<double>(d);
        const double u = fire_psi(p.c, x) / row.N, db = weight(h, i, d);
        const int s = segments.segment_of(u);
        const double slope = segments.line(p, h, s).slope;
        sums[static_cast<size_t>(2 * (h * kFireSegments + s))] += db;
        sums[static_cast<size_t>(2 * (h * kFireSegments + s) + 1)] += db * u;
        of_u += db * slope * u;
        of_psi += db * slope * fire_psi_dc(p.c, x);
      }
    }
    dc += (of_psi - of_u * row.dc) / row.N;
    dm -= of_u * row.dm / row.N;
  }
  double* const to = g.data();
  fire_adjoint({to, to + kFireHidden, to + 2 * kFireHidden, to + (2 + kH) * kFireHidden}, p,
               segments, sums.data());
  return g;
}

double value(const Fire& f, const FireSegments& segments, int64_t h, double u) {
  const FireLine line = segments.line(f.parameters(), h, segments.segment_of(u));
  return line.slope * u + line.offset;
}

TEST_CASE("fire's segments are its network") {
  for (const char* stream : {"a", "b", "c"}) {
    const Fire f(stream);
    const FireSegments segments(f.parameters());
    CHECK(segments.kinks[4] < INFINITY);
    for (int64_t h = 0; h < kH; ++h) {
      for (double u = 0; u < 3; u += 0.001) {
        CHECK(value(f, segments, h, u) == Approx(f.network(h, u)).epsilon(1e-12).margin(1e-12));
      }
    }
  }
}

TEST_CASE("fire's gradients by segments agree with finite differences of its formula") {
  const Fire f("d");
  const std::vector<double> g = gradient(f);
  double largest = 0;
  for (double x : g) largest = std::max(largest, std::abs(x));
  for (size_t n = 0; n < f.x.size(); ++n) {
    Fire above = f, below = f;
    // Small, so that no logit crosses a kink: between kinks the sum is linear.
    constexpr double h = 1e-7;
    above.x[n] += h;
    below.x[n] -= h;
    const double difference = (weighted_sum(above) - weighted_sum(below)) / (2 * h);
    INFO("parameter " << n << ": difference " << difference << ", gradient " << g[n]);
    CHECK(std::abs(difference - g[n]) <= 1e-6 * largest);
  }
}

TEST_CASE("fire with a zero network is no prior") {
  Fire f("e");
  for (size_t n = 0; n + 2 < f.x.size(); ++n) f.x[n] = 0;
  const FireSegments segments(f.parameters());
  CHECK(segments.kinks[0] == INFINITY);
  for (double u : {0.0, 0.5, 1.0}) CHECK(value(f, segments, 1, u) == 0);
}

}  // namespace
}  // namespace bamtrain::testing
