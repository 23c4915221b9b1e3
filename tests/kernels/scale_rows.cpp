// Rows of logit scales on the engine, compared with closed forms and the host's registry.

#include "kernels/scale_rows.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "engine/support.h"
#include "mechanism_values.h"
#include "priors/differences.h"
#include "scales/registry.h"

using namespace bamtrain;
using namespace bamtrain::test;
using engine::GlobalArray;
using engine::ScopedOptions;
using kernels::ScaleGradients;
using kernels::ScaleRows;

namespace {

/// First keys for packed documents and a window.
std::vector<int32_t> first_keys(size_t B, size_t T) {
  std::vector<int32_t> first;
  for (size_t b = 0; b < B; ++b) {
    int32_t start = 0;
    for (size_t i = 0; i < T; ++i) {
      if (i > 0 && (i * 7 + b * 3) % 41 == 0) start = static_cast<int32_t>(i);
      first.push_back(std::max(start, static_cast<int32_t>(i) - 100));
    }
  }
  return first;
}

struct ScaleCase {
  size_t B, H, T;
  double offset;
  size_t first_head = 0;
};
constexpr ScaleCase kScaleCases[] = {{1, 1, 1, 0},      {2, 3, 130, 0},  {2, 3, 130, 1},
                                     {2, 5, 130, 0, 2}, {3, 2, 1500, 0}, {3, 2, 1500, 1, 1},
                                     {1, 1, 4096, 1},   {33, 1, 4096, 0}};

ScaleRows rows_of(const ScaleCase& c, const GlobalArray<float>& s,
                  const GlobalArray<int32_t>& first) {
  ScaleRows rows;
  rows.name = "ssmax";
  rows.constants = {{c.offset}};
  rows.theta[0] = s.data();
  rows.first_key = first.data();
  rows.B = static_cast<int64_t>(c.B);
  rows.H = static_cast<int64_t>(c.H);
  rows.T = static_cast<int64_t>(c.T);
  rows.first_head = static_cast<int64_t>(c.first_head);
  return rows;
}

std::vector<float> scale_gradient(const ScaleCase& c, const std::vector<float>& dscale) {
  const GlobalArray<float> s(drawn("s", c.H)), gradient(dscale);
  const GlobalArray<int32_t> first(first_keys(c.B, c.T));
  GlobalArray<float> ds(std::vector<float>(c.H, kBefore));
  const ScaleRows rows = rows_of(c, s, first);
  GlobalArray<double> scratch(
      static_cast<size_t>(kernels::scale_backward_scratch(rows.B, rows.H, rows.T)));
  ScaleGradients g;
  g.dtheta[0] = ds.data();
  g.dscale = gradient.data();
  g.scratch = scratch.data();
  REQUIRE(kernels::scale_backward(g, rows, nullptr).ok());
  return ds.values();
}

}  // namespace

TEST_CASE("ssmax scales rows by the logarithm of what they see") {
  for (const ScaleCase& c : kScaleCases) {
    INFO("B " << c.B << " H " << c.H << " T " << c.T << " offset " << c.offset);
    const std::vector<float> s = drawn("s", c.H);
    const std::vector<int32_t> first = first_keys(c.B, c.T);
    const GlobalArray<float> on_s(s);
    const GlobalArray<int32_t> on_first(first);
    GlobalArray<float> scale(c.B * c.H * c.T);
    REQUIRE(kernels::scale_forward(scale.data(), rows_of(c, on_s, on_first), nullptr).ok());
    double worst = 0;
    for (size_t b = 0; b < c.B; ++b) {
      for (size_t h = 0; h < c.H; ++h) {
        for (size_t i = 0; i < c.T; ++i) {
          const auto n = static_cast<double>(i) - first[b * c.T + i] + 1;
          const double t = h < c.first_head ? 1 : s[h] * std::log(n + c.offset);
          const double error = std::abs(scale[(b * c.H + h) * c.T + i] - t);
          worst = std::max(worst, t == 0 ? error * 1e30 : error / std::abs(t));
        }
      }
    }
    CHECK(worst < kFp32 + 1e-12);
  }
}

TEST_CASE("gradients of ssmax are sums over all rows, added to what is there") {
  for (const ScaleCase& c : kScaleCases) {
    INFO("B " << c.B << " H " << c.H << " T " << c.T << " offset " << c.offset);
    const std::vector<float> dscale = drawn("dscale", c.B * c.H * c.T);
    const std::vector<int32_t> first = first_keys(c.B, c.T);
    const std::vector<float> found = scale_gradient(c, dscale);
    for (size_t h = 0; h < c.H; ++h) {
      double sum = kBefore;
      for (size_t b = 0; b < c.B; ++b) {
        for (size_t i = 0; i < c.T; ++i) {
          const auto n = static_cast<double>(i) - first[b * c.T + i] + 1;
          if (h < c.first_head) continue;
          sum += dscale[(b * c.H + h) * c.T + i] * std::log(n + c.offset);
        }
      }
      CHECK(std::abs(found[h] - sum) <= kFp32 * std::abs(sum) + 1e-9);
    }
  }
}

TEST_CASE("every scale of the registry has kernels that agree with it") {
  size_t found = 0;
  for (const ScaleInfo& scale : all_scales()) {
    const auto* const kind = scale.as<LengthKind>();
    if (!kind) continue;
    ++found;
    for (const ScaleCase& c : kScaleCases) {
      Options o = default_options(scale.options);
      if (o.has("lengths")) o.set("lengths", static_cast<double>(std::max<size_t>(c.T, 40) + 3));
      if (o.has("t")) o.set("t", 0.3);
      INFO(scale.name << " B " << c.B << " H " << c.H << " T " << c.T);
      const FormulaConstants constants = testing::constants_of(scale, o, static_cast<int64_t>(c.H));
      std::vector<std::vector<float>> theta, zeros;
      for (const MechanismParameter& p :
           scale.parameters(o, testing::shape_of(static_cast<int64_t>(c.H)))) {
        size_t n = 1;
        for (int64_t d : p.shape) n *= static_cast<size_t>(d);
        theta.push_back(drawn(p.name, n));
        zeros.emplace_back(n, 0.0f);
      }
      const std::vector<int32_t> first = first_keys(c.B, c.T);
      const GlobalArray<int32_t> on_first(first);
      std::vector<std::unique_ptr<GlobalArray<float>>> on_device, gradients;
      const GlobalArray<float> placeholder(1);
      ScaleRows rows = rows_of(c, placeholder, on_first);
      rows.name = scale.name.c_str();
      rows.constants = constants;
      rows.theta[0] = nullptr;
      ScaleGradients g;
      for (size_t p = 0; p < theta.size(); ++p) {
        on_device.push_back(std::make_unique<GlobalArray<float>>(theta[p]));
        gradients.push_back(
            std::make_unique<GlobalArray<float>>(std::vector<float>(theta[p].size(), kBefore)));
        rows.theta[p] = on_device.back()->data();
        g.dtheta[p] = gradients.back()->data();
      }
      const std::vector<float> dt = drawn("dt", c.B * c.H * c.T);
      const GlobalArray<float> dscale(dt);
      GlobalArray<float> t(dt.size());
      GlobalArray<double> scratch(
          static_cast<size_t>(kernels::scale_backward_scratch(rows.B, rows.H, rows.T)));
      g.dscale = dscale.data();
      g.scratch = scratch.data();
      REQUIRE(kernels::scale_forward(t.data(), rows, nullptr).ok());
      REQUIRE(kernels::scale_backward(g, rows, nullptr).ok());

      const Pointed values(theta);
      Pointed truth(zeros);
      const std::vector<float> scaled = t.values();
      size_t wrong = 0;
      for (size_t e = 0; e < dt.size(); ++e) {
        const size_t b = e / (c.H * c.T), h = e / c.T % c.H, i = e % c.T;
        const int64_t n = static_cast<int64_t>(i) - first[b * c.T + i] + 1;
        const auto head = static_cast<int64_t>(h);
        const double expected =
            h < c.first_head ? 1 : kind->value(constants, values.read.data(), head, n);
        // One rounding to fp32; fp64 functions of host and device may differ by one ulp.
        wrong += !(std::abs(scaled[e] - expected) <= kFp32 * (1 + 1e-6) * std::abs(expected));
        if (h < c.first_head) continue;
        kind->accumulate(constants, values.read.data(), head, n, dt[e], truth.written.data());
      }
      CHECK(wrong == 0);
      for (size_t p = 0; p < theta.size(); ++p) {
        const std::vector<float> sums = gradients[p]->values();
        for (size_t e = 0; e < sums.size(); ++e) {
          const double expected = kBefore + truth.values[p][e];
          CHECK(std::abs(sums[e] - expected) <= kFp32 * std::abs(expected) + 1e-9);
        }
      }
    }
  }
  CHECK(found == 4);
}

TEST_CASE("scale rows have the same bits in every order of threads, warps and blocks") {
  const ScaleCase c{2, 2, 2500, 0};
  const std::vector<float> dscale = drawn("dscale", c.B * c.H * c.T);
  const auto ds = scale_gradient(c, dscale);
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    CHECK(scale_gradient(c, dscale) == ds);
  }
}

TEST_CASE("scales without kernels, empty shapes and missing parameters are refused") {
  GlobalArray<float> f(64);
  GlobalArray<double> d(64);
  const GlobalArray<int32_t> first(std::vector<int32_t>(8, 0));
  const ScaleCase c{2, 2, 4, 0};
  const auto scale_refused = [&](auto change) {
    ScaleRows rows = rows_of(c, f, first);
    change(rows);
    const bool forward = is_refused(kernels::scale_forward(f.data() + 8, rows, nullptr));
    ScaleGradients g;
    g.dtheta[0] = f.data() + 40;
    g.dscale = f.data() + 8;
    g.scratch = d.data();
    CHECK(forward == is_refused(kernels::scale_backward(g, rows, nullptr)));
    return forward;
  };
  CHECK_FALSE(scale_refused([](auto&) {}));
  CHECK(scale_refused([](auto& r) { r.name = "none"; }));
  CHECK(scale_refused([](auto& r) { r.name = nullptr; }));
  CHECK(scale_refused([](auto& r) { r.B = 0; }));
  CHECK(scale_refused([](auto& r) { r.H = 0; }));
  CHECK(scale_refused([](auto& r) { r.T = 0; }));
  CHECK(scale_refused([](auto& r) { r.theta[0] = nullptr; }));
  CHECK(scale_refused([](auto& r) { r.name = "sentmax"; }));  // without its gamma
  CHECK(scale_refused([](auto& r) { r.first_head = -1; }));
  CHECK(scale_refused([](auto& r) { r.first_head = 2; }));
  CHECK(scale_refused([](auto& r) { r.T = int64_t{1} << 30; }));
}
