// FIRE's segments and their gradients on the engine, compared with the formulas of priors/fire.h on
// the host. tests/priors/fire.cpp compares those with the network itself.

#include "kernels/fire.h"

#include <deque>

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

struct FireCase {
  int64_t B, H, T;
  double c, m;
};
constexpr FireCase kFireCases[] = {
    {1, 1, 1, 0.1, 1}, {2, 3, 65, -0.3, -1.2}, {3, 12, 700, 0.1, 0.01}};
constexpr double kL0 = 40.5;
constexpr float kFireBefore = 0.125f;  // initial value of gradients

/// Gradients or parameters: c, m, w1, b1, w2, b2.
using Theta = std::vector<Doubles>;

Theta parameters(const FireCase& c) {
  const auto H = static_cast<size_t>(c.H);
  Theta t = {{as<float>(c.c)},
             {as<float>(c.m)},
             normal<float>("w1", kFireHidden),
             normal<float>("b1", kFireHidden),
             normal<float>("w2", H * kFireHidden),
             normal<float>("b2", H)};
  t[2][5] = 0;                           // no kink
  t[2][7] = t[2][6], t[3][7] = t[3][6];  // two in the same place
  return t;
}
FireParameters of_host(const Theta& t, const FireCase& c) {
  return {t[2].data(), t[3].data(), t[4].data(), t[5].data(), t[0][0], t[1][0], c.H, kL0};
}

struct FireRun {
  Theta theta;
  Doubles psi, psi_dc, inverse, slope, offset;
  std::vector<int32_t> ends, positions;
  Doubles dfire, dfire_u, dfire_psi;
  Theta dtheta;

  explicit FireRun(const FireCase& c) : theta(parameters(c)) {
    const auto H = static_cast<size_t>(c.H), T = static_cast<size_t>(c.T);
    const auto rows = static_cast<size_t>(c.B) * T;
    dfire = normal<float>("dfire", 2 * H * kFireSegments);
    dfire_u = normal<float>("dfire_u", rows * H);
    dfire_psi = normal<float>("dfire_psi", rows * H);
    for (size_t n = 0; n < rows; ++n) positions.push_back(static_cast<int32_t>(n % T % 50));

    std::deque<GlobalArray<float>> on_theta, on_dtheta;
    for (const Doubles& t : theta) {
      on_theta.emplace_back(elements<float>(t));
      on_dtheta.emplace_back(std::vector<float>(t.size(), kFireBefore));
    }
    GlobalArray<float> on_psi(T), on_psi_dc(T), on_inverse(T);
    GlobalArray<float> on_slope(H * kFireSegments), on_offset(H * kFireSegments);
    GlobalArray<int32_t> on_ends(T * kFireHidden);
    kernels::FireForward f;
    f.psi = on_psi.data();
    f.psi_dc = on_psi_dc.data();
    f.inverse = on_inverse.data();
    f.ends = on_ends.data();
    f.slope = on_slope.data();
    f.offset = on_offset.data();
    f.theta = {on_theta[0].data(), on_theta[1].data(), on_theta[2].data(),
               on_theta[3].data(), on_theta[4].data(), on_theta[5].data()};
    f.L0 = kL0;
    f.H = static_cast<int>(c.H);
    f.T = c.T;
    REQUIRE(kernels::fire_forward(f, nullptr).ok());

    const GlobalArray<double> on_dfire(dfire);
    const GlobalArray<float> of_u(elements<float>(dfire_u)), of_psi(elements<float>(dfire_psi));
    const GlobalArray<int32_t> on_positions(positions);
    GlobalArray<double> scratch(static_cast<size_t>(kernels::fire_backward_scratch(c.B, c.H, c.T)));
    kernels::FireBackward g;
    g.dtheta = {on_dtheta[0].data(), on_dtheta[1].data(), on_dtheta[2].data(),
                on_dtheta[3].data(), on_dtheta[4].data(), on_dtheta[5].data()};
    g.dfire = on_dfire.data();
    g.dfire_u = of_u.data();
    g.dfire_psi = of_psi.data();
    g.positions = on_positions.data();
    g.theta = f.theta;
    g.L0 = kL0;
    g.B = static_cast<int>(c.B);
    g.H = static_cast<int>(c.H);
    g.T = static_cast<int>(c.T);
    g.scratch = scratch.data();
    REQUIRE(kernels::fire_backward(g, nullptr).ok());

    psi = doubles(on_psi);
    psi_dc = doubles(on_psi_dc);
    inverse = doubles(on_inverse);
    slope = doubles(on_slope);
    offset = doubles(on_offset);
    ends = on_ends.values();
    for (const auto& d : on_dtheta) dtheta.push_back(doubles(d));
  }
};

/// Allows one rounding to fp32 of an fp64 sum.
void check_rounded(const Doubles& found, const Doubles& truth) {
  check_close(found, truth, [&](size_t n) { return 0x1p-24 * std::abs(truth[n]) + 1e-10; });
}

void check(const FireCase& c) {
  INFO("B " << c.B << " H " << c.H << " T " << c.T << " c " << c.c << " m " << c.m);
  const FireRun r(c);
  const FireParameters p = of_host(r.theta, c);
  const FireSegments segments(p);
  Doubles psi, psi_dc, inverse, slope, offset;
  std::vector<int32_t> ends;
  for (int64_t t = 0; t < c.T; ++t) {
    const FireNormalizer row(p, t);
    psi.push_back(fire_psi(p.c, static_cast<double>(t)));
    psi_dc.push_back(fire_psi_dc(p.c, static_cast<double>(t)));
    inverse.push_back(1 / row.N);
    for (double kink : segments.kinks) ends.push_back(fire_end(p, kink, row.N, c.T));
  }
  for (int64_t h = 0; h < c.H; ++h) {
    for (int s = 0; s < kFireSegments; ++s) {
      slope.push_back(segments.line(p, h, s).slope);
      offset.push_back(segments.line(p, h, s).offset);
    }
  }
  check_rounded(r.psi, psi);
  check_rounded(r.psi_dc, psi_dc);
  check_rounded(r.inverse, inverse);
  check_rounded(r.slope, slope);
  check_rounded(r.offset, offset);
  CHECK(r.ends == ends);

  Theta d;
  for (const Doubles& t : r.theta) d.emplace_back(t.size(), kFireBefore);
  fire_adjoint({d[2].data(), d[3].data(), d[4].data(), d[5].data()}, p, segments, r.dfire.data());
  for (int64_t b = 0; b < c.B; ++b) {
    for (int64_t h = 0; h < c.H; ++h) {
      for (int64_t i = 0; i < c.T; ++i) {
        const auto n = static_cast<size_t>((b * c.H + h) * c.T + i);
        const FireNormalizer row(p, r.positions[static_cast<size_t>(b * c.T + i)]);
        d[0][0] += (r.dfire_psi[n] - r.dfire_u[n] * row.dc) / row.N;
        d[1][0] -= r.dfire_u[n] * row.dm / row.N;
      }
    }
  }
  for (size_t k = 0; k < d.size(); ++k) {
    INFO("parameter " << k);
    check_rounded(r.dtheta[k], d[k]);
  }
}

}  // namespace

TEST_CASE("fire's segments and their gradients agree with the host") {
  for (const FireCase& c : kFireCases) check(c);
}

TEST_CASE("fire's segments have the same bits in every order of threads, warps and blocks") {
  check_same_under_all_schedules([] {
    const FireRun r(kFireCases[1]);
    Doubles all(r.ends.begin(), r.ends.end());
    for (const Doubles* x : {&r.psi, &r.psi_dc, &r.inverse, &r.slope, &r.offset}) {
      all.insert(all.end(), x->begin(), x->end());
    }
    for (const Doubles& x : r.dtheta) all.insert(all.end(), x.begin(), x.end());
    return all;
  });
}

TEST_CASE(
    "fire trains no parameter without a gradient, and arguments that it does not take are "
    "refused") {
  const FireCase c = {1, 2, 3, 0.1, 1};
  const GlobalArray<float> f(std::vector<float>(2 * kFireHidden, 0.5f));
  const GlobalArray<double> sums(std::vector<double>(4 * kFireSegments, 1.0));
  const GlobalArray<int32_t> positions(std::vector<int32_t>(3, 1));
  GlobalArray<double> scratch(static_cast<size_t>(kernels::fire_backward_scratch(c.B, c.H, c.T)));
  kernels::FireBackward g;
  g.theta = {f.data(), f.data(), f.data(), f.data(), f.data(), f.data()};
  g.dfire = sums.data();
  g.dfire_u = g.dfire_psi = f.data();
  g.positions = positions.data();
  g.L0 = kL0;
  g.B = 1;
  g.H = 2;
  g.T = 3;
  g.scratch = scratch.data();
  CHECK(kernels::fire_backward(g, nullptr).ok());

  const auto refused = [&](auto&& change) {
    kernels::FireBackward changed = g;
    change(changed);
    check_refused(kernels::fire_backward(changed, nullptr));
  };
  refused([](auto& x) { x.B = 0; });
  refused([](auto& x) { x.H = 65536; });
  refused([](auto& x) { x.T = 0; });
  refused([](auto& x) { x.theta.b2 = nullptr; });
  refused([](auto& x) { x.dfire = nullptr; });
  refused([](auto& x) { x.positions = nullptr; });
  refused([](auto& x) { x.scratch = nullptr; });
  kernels::FireForward empty;
  empty.theta = g.theta;
  empty.H = 2;
  empty.T = 3;
  check_refused(kernels::fire_forward(empty, nullptr));
}
