// Per-row numbers from gates on the engine, compared with fp64: logit scales of kind adaptive.

#include "kernels/gated_rows.h"

#include <deque>

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

struct GatedCase {
  size_t B, H, T;
  bool bias = false;
  size_t first_head = 0;
  size_t before = 0, after = 0;  // elements of a row on either side of the gates

  size_t row() const { return before + 2 * H + after; }
};
constexpr GatedCase kGatedCases[] = {{1, 1, 1},
                                     {2, 3, 31, true, 0, 8, 5},
                                     {1, 5, 256, true, 3},
                                     {3, 4, 257, false, 2, 4, 0},
                                     {2, 2, 700, true, 0, 16, 7}};

constexpr float kGatedBefore = 0.125f;  // initial value of dbias
constexpr double kDelta = 0.5, kG = 1.5;

template <class A>
struct GatedRun {
  Doubles gates, bias[2], dscale;  // inputs
  std::vector<int32_t> first;
  Doubles scale, dgates, dbias[2];

  explicit GatedRun(const GatedCase& c) {
    gates = normal<A>("gates", c.B * c.T * c.row(), 2);
    dscale = normal<float>("dscale", c.B * c.H * c.T);
    for (size_t n = 0; n < c.B * c.T; ++n) {
      const size_t t = n % c.T;
      first.push_back(static_cast<int32_t>(t - t % 50));  // documents
    }
    const GlobalArray<A> on_gates(elements<A>(gates));
    const GlobalArray<float> on_dscale(elements<float>(dscale));
    const GlobalArray<int32_t> on_first(first);
    GlobalArray<float> on_scale(dscale.size());
    GlobalArray<A> on_dgates(elements<A>(Doubles(gates.size(), 7)));
    GlobalArray<double> scratch(static_cast<size_t>(kernels::gated_rows_scratch(
        static_cast<int64_t>(c.B), static_cast<int64_t>(c.H), static_cast<int64_t>(c.T))));
    std::deque<GlobalArray<float>> on_bias, on_dbias;  // deques keep addresses stable
    for (int k = 0; k < 2; ++k) {
      bias[k] = c.bias ? normal<float>(k == 0 ? "beta" : "gamma", c.H) : Doubles(c.H, 0);
      on_bias.emplace_back(elements<float>(bias[k]));
      on_dbias.emplace_back(std::vector<float>(c.H, kGatedBefore));
    }
    kernels::GatedRows<A> in;
    in.gates = on_gates.data() + c.before;
    in.batch = static_cast<int64_t>(c.T * c.row());
    in.row = static_cast<int64_t>(c.row());
    in.first_key = on_first.data();
    in.constants = {{kDelta, kG}};
    in.B = static_cast<int>(c.B);
    in.H = static_cast<int>(c.H);
    in.T = static_cast<int>(c.T);
    in.first_head = static_cast<int>(c.first_head);
    kernels::GatedRowsGradients<A> g;
    g.dgates = on_dgates.data() + c.before;
    g.drows = on_dscale.data();
    if (c.bias) {
      g.scratch = scratch.data();
      for (size_t k = 0; k < 2; ++k) {
        in.bias[k] = on_bias[k].data();
        g.dbias[k] = on_dbias[k].data();
      }
    }
    REQUIRE(kernels::gated_rows_forward({on_scale.data()}, in, nullptr).ok());
    REQUIRE(kernels::gated_rows_backward(g, in, nullptr).ok());
    scale = doubles(on_scale);
    dgates = doubles(on_dgates);
    for (size_t k = 0; k < 2; ++k) dbias[k] = doubles(on_dbias[k]);
  }
};

/// t for gates u and w, in a row that sees n keys.
double t_of(double u, double w, double n) {
  return kDelta + std::log(1 + std::exp(u)) * std::pow(std::log(n + 1), kG * std::tanh(w));
}

template <class A>
void check(const GatedCase& c) {
  INFO("B " << c.B << " H " << c.H << " T " << c.T << " bias " << c.bias);
  const GatedRun<A> r(c);
  Doubles scale, dgates(r.dgates.size(), 7), size(r.dgates.size(), 1);
  Doubles dbias[2] = {Doubles(c.H, kGatedBefore), Doubles(c.H, kGatedBefore)};
  for (size_t b = 0; b < c.B; ++b) {
    for (size_t h = 0; h < c.H; ++h) {
      for (size_t t = 0; t < c.T; ++t) {
        const size_t beta = (b * c.T + t) * c.row() + c.before + h, gamma = beta + c.H;
        const double u = r.gates[beta] + r.bias[0][h], w = r.gates[gamma] + r.bias[1][h];
        const double n = static_cast<double>(t) - r.first[b * c.T + t] + 1;
        const double dt = r.dscale[(b * c.H + h) * c.T + t], e = 1e-5;
        const bool scaled = h >= c.first_head;
        scale.push_back(scaled ? t_of(u, w, n) : 1);
        const double d[2] = {(t_of(u + e, w, n) - t_of(u - e, w, n)) / (2 * e),
                             (t_of(u, w + e, n) - t_of(u, w - e, n)) / (2 * e)};
        for (size_t k = 0; k < 2; ++k) {
          const size_t at = k == 0 ? beta : gamma;
          dgates[at] = scaled ? dt * d[k] : 0;
          size[at] = scaled ? std::abs(dt) * (std::abs(d[k]) + t_of(u, w, n)) : 0;
          dbias[k][h] += c.bias ? dgates[at] : 0;
        }
      }
    }
  }
  // One rounding when stored; the finite differences are accurate to 1e-9 of t.
  check_close(r.scale, scale, [&](size_t n) { return 0x1p-24 * (1 + 1e-6) * scale[n]; });
  check_close(r.dgates, dgates, [&](size_t n) {
    return kRoundoff<A> * (1 + 1e-6) * std::abs(dgates[n]) + 1e-9 * size[n] + 1e-30;
  });
  for (size_t k = 0; k < 2; ++k) {
    check_close(r.dbias[k], dbias[k],
                [&](size_t h) { return 0x1p-24 * std::abs(dbias[k][h]) + 1e-6; });
  }
}

}  // namespace

TEST_CASE("adaptive scales and their gradients agree with fp64") {
  for (const GatedCase& c : kGatedCases) {
    check<float>(c);
    check<DeviceBf16>(c);
  }
}

TEST_CASE("adaptive scales have the same bits in every order of threads, warps and blocks") {
  check_same_under_all_schedules([] {
    const GatedRun<DeviceBf16> r({2, 3, 300, true, 1, 3, 1});
    Doubles all = r.scale;
    for (const Doubles* more : {&r.dgates, &r.dbias[0], &r.dbias[1]}) {
      all.insert(all.end(), more->begin(), more->end());
    }
    return all;
  });
}

TEST_CASE("adaptive scales of sizes and arrays that they do not take are refused") {
  const GlobalArray<float> f(std::vector<float>(16, 0.0f));
  const GlobalArray<int32_t> first(std::vector<int32_t>(2, 0));
  GlobalArray<float> out(32);
  GlobalArray<double> d(8);
  const auto refused = [&](auto change) {
    kernels::GatedRows<float> in{GatedRule::adaptive,
                                 f.data(),
                                 8,
                                 4,
                                 {f.data(), f.data()},
                                 first.data(),
                                 nullptr,
                                 {},
                                 1,
                                 2,
                                 2,
                                 0};
    kernels::GatedRowsGradients<float> g{
        out.data(), {out.data() + 8, out.data() + 10}, f.data(), d.data()};
    change(in, g);
    return kernels::gated_rows_backward(g, in, nullptr).code == device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused([](auto&, auto&) {}));
  CHECK(refused([](auto& in, auto&) { in.B = 0; }));
  CHECK(refused([](auto& in, auto&) { in.B = 65536; }));
  CHECK(refused([](auto& in, auto&) { in.H = 0; }));
  CHECK(refused([](auto& in, auto&) { in.H = 65536; }));
  CHECK(refused([](auto& in, auto&) { in.T = 0; }));
  CHECK(refused([](auto& in, auto&) { in.first_head = -1; }));
  CHECK(refused([](auto& in, auto&) { in.first_head = 2; }));
  CHECK(refused([](auto& in, auto&) { in.gates = nullptr; }));
  CHECK(refused([](auto& in, auto&) { in.first_key = nullptr; }));
  CHECK(refused([](auto& in, auto&) { in.bias[1] = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.dgates = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.drows = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.dbias[0] = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.scratch = nullptr; }));
  // Without a bias, neither is read.
  CHECK_FALSE(refused([](auto& in, auto& g) {
    in.bias[0] = in.bias[1] = nullptr;
    g.dbias[0] = nullptr;
    g.scratch = nullptr;
  }));
  kernels::GatedRows<float> in{
      GatedRule::adaptive, f.data(), 8, 4, {}, first.data(), nullptr, {}, 1, 2, 2, 0};
  check_refused(kernels::gated_rows_forward({}, in, nullptr));
  check_refused(kernels::gated_rows_forward({out.data(), d.data()}, in, nullptr));
  REQUIRE(kernels::gated_rows_forward({nullptr, d.data()}, in, nullptr).ok());
  REQUIRE(kernels::gated_rows_forward({out.data()}, in, nullptr).ok());
  const Doubles wide = d.values(), rows = doubles(out);
  for (size_t n = 0; n < 4; ++n) CHECK(static_cast<float>(wide[n]) == rows[n]);
}
