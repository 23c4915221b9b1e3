// Running sums of gates on the engine, compared with fp64.

#include "kernels/sums.h"

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

struct SumsCase {
  size_t B, H, T;
  size_t before = 0, after = 0;  // elements of a row on either side of the gates

  size_t row() const { return before + H + after; }
};
constexpr SumsCase kSumsCases[] = {
    {1, 1, 1}, {2, 3, 31, 8, 5}, {1, 5, 32}, {3, 4, 33, 4, 0}, {2, 9, 700, 16, 7}};

constexpr float kSumsBefore = 0.125f;  // initial value of dbias

template <class A>
struct SumsRun {
  Doubles gates, bias, dsums;  // inputs
  Doubles sums, dgates, dbias;

  explicit SumsRun(const SumsCase& c) {
    gates = normal<A>("gates", c.B * c.T * c.row(), 2);
    bias = normal<float>("bias", c.H);
    dsums = normal<float>("dsums", c.B * c.H * c.T);
    const GlobalArray<A> on_gates(elements<A>(gates));
    const GlobalArray<float> on_bias(elements<float>(bias)), of_sums(elements<float>(dsums));
    GlobalArray<double> on_sums(c.B * c.H * c.T), scratch(c.B * c.H);
    GlobalArray<A> on_dgates(elements<A>(Doubles(gates.size(), 7)));
    GlobalArray<float> on_dbias(std::vector<float>(c.H, kSumsBefore));
    kernels::Gates<A> in;
    in.data = on_gates.data() + c.before;
    in.batch = static_cast<int64_t>(c.T * c.row());
    in.row = static_cast<int64_t>(c.row());
    in.bias = on_bias.data();
    in.B = static_cast<int>(c.B);
    in.H = static_cast<int>(c.H);
    in.T = static_cast<int>(c.T);
    REQUIRE(kernels::running_sums_forward(
                {on_sums.data(), static_cast<int64_t>(c.H * c.T), static_cast<int64_t>(c.T)}, in,
                nullptr)
                .ok());
    kernels::GateGradients<A> g;
    g.dgates = on_dgates.data() + c.before;
    g.dbias = on_dbias.data();
    g.dsums = of_sums.data();
    g.scratch = scratch.data();
    REQUIRE(kernels::running_sums_backward(g, in, nullptr).ok());
    sums = on_sums.values();
    dgates = doubles(on_dgates);
    dbias = doubles(on_dbias);
  }
};

template <class A>
void check(const SumsCase& c) {
  INFO("B " << c.B << " H " << c.H << " T " << c.T);
  const SumsRun<A> r(c);
  Doubles sums, dgates(r.dgates.size(), 7), dbias(c.H, kSumsBefore), size(r.dgates.size(), 1);
  for (size_t b = 0; b < c.B; ++b) {
    for (size_t h = 0; h < c.H; ++h) {
      const auto gate = [&](size_t t) { return (b * c.T + t) * c.row() + c.before + h; };
      double S = 0;
      for (size_t t = 0; t < c.T; ++t) {
        S += std::log(1 + std::exp(r.gates[gate(t)] + r.bias[h]));
        sums.push_back(S);
      }
      double du = 0;
      for (size_t t = c.T; t-- > 0;) {
        const size_t n = (b * c.H + h) * c.T + t;
        du += r.dsums[n];
        const double d = du / (1 + std::exp(-(r.gates[gate(t)] + r.bias[h])));
        dgates[gate(t)] = d;
        size[gate(t)] = std::abs(d);
        dbias[h] += d;
      }
    }
  }
  // fp64 sums of at most 700 terms, in a different order.
  check_close(r.sums, sums, [&](size_t n) { return 1e-13 * sums[n]; });
  // One rounding when stored.
  check_close(r.dgates, dgates,
              [&](size_t n) { return kRoundoff<A> * (1 + 1e-6) * size[n] + 1e-12; });
  check_close(r.dbias, dbias, [&](size_t h) { return 0x1p-24 * std::abs(dbias[h]) + 1e-9; });
}

}  // namespace

TEST_CASE("running sums and their gradients agree with fp64") {
  for (const SumsCase& c : kSumsCases) {
    check<float>(c);
    check<DeviceBf16>(c);
  }
}

TEST_CASE("running sums have the same bits in every order of threads, warps and blocks") {
  check_same_under_all_schedules([] {
    const SumsRun<DeviceBf16> r({2, 5, 70, 3, 1});
    Doubles all = r.sums;
    all.insert(all.end(), r.dgates.begin(), r.dgates.end());
    all.insert(all.end(), r.dbias.begin(), r.dbias.end());
    return all;
  });
}

TEST_CASE("running sums of sizes and arrays that they do not take are refused") {
  const GlobalArray<float> f(std::vector<float>(8, 0.0f));
  GlobalArray<float> out(8);
  GlobalArray<double> d(8);
  const auto refused = [&](auto change) {
    kernels::Gates<float> in{f.data(), 4, 2, f.data(), 1, 2, 2};
    kernels::GateGradients<float> g{out.data(), out.data() + 4, f.data(), d.data()};
    change(in, g);
    return kernels::running_sums_backward(g, in, nullptr).code == device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused([](auto&, auto&) {}));
  CHECK(refused([](auto& in, auto&) { in.B = 0; }));
  CHECK(refused([](auto& in, auto&) { in.B = 65536; }));
  CHECK(refused([](auto& in, auto&) { in.H = 0; }));
  CHECK(refused([](auto& in, auto&) { in.T = 0; }));
  CHECK(refused([](auto& in, auto&) { in.data = nullptr; }));
  CHECK(refused([](auto& in, auto&) { in.bias = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.dgates = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.dbias = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.dsums = nullptr; }));
  CHECK(refused([](auto&, auto& g) { g.scratch = nullptr; }));
  check_refused(kernels::running_sums_forward(
      {}, kernels::Gates<float>{f.data(), 4, 2, f.data(), 1, 2, 2}, nullptr));
}
