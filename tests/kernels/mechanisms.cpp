// Prior tables and logit scales on the engine against closed forms and the host's registries.

#include "kernels/mechanisms.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "engine/support.h"
#include "priors/differences.h"
#include "priors/registry.h"
#include "scales/scale.h"

using namespace bamtrain;
using engine::GlobalArray;
using engine::With;
using kernels::kMaxPriorParameters;
using kernels::ScaleGradients;
using kernels::ScaleRows;
using kernels::TablePrior;
using kernels::TablePriorGradients;

namespace {

constexpr double kFp32 = 0x1p-24;  // unit roundoff

std::vector<float> normal(const std::string& stream, size_t n) {
  const Rng rng(9, stream);
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(0.5 * rng.normal(i));
  return x;
}

/// theta[p][h] of a prior with `parameters` of them.
std::vector<std::vector<float>> thetas(size_t parameters, size_t H) {
  std::vector<std::vector<float>> all;
  for (size_t p = 0; p < parameters; ++p) all.push_back(normal("theta" + std::to_string(p), H));
  return all;
}

/// Within the limits of the prior's parameters for H heads, in their sizes.
std::vector<std::vector<float>> thetas_of(const PriorInfo& prior, const Options& o, size_t H) {
  std::vector<std::vector<float>> all;
  for (const MechanismParameter& p :
       prior.parameters(o, testing::shape_of(static_cast<int64_t>(H)))) {
    size_t n = 1;
    for (int64_t d : p.shape) n *= static_cast<size_t>(d);
    std::vector<float>& theta = all.emplace_back(normal(p.name, n));
    for (float& x : theta) {
      if (x < p.minimum) x = static_cast<float>(p.minimum) - x;
    }
  }
  return all;
}

/// theta on the device, and a TablePrior that points there.
struct OnDevice {
  std::vector<std::unique_ptr<GlobalArray<float>>> arrays;
  TablePrior prior;

  OnDevice(const std::string& name, const std::vector<std::vector<float>>& theta, size_t H,
           size_t T, int form = 0)
      : name_(name) {
    for (size_t p = 0; p < theta.size(); ++p) {
      arrays.push_back(std::make_unique<GlobalArray<float>>(theta[p]));
      prior.theta[p] = arrays[p]->data();
    }
    prior.name = name_.c_str();
    prior.H = static_cast<int64_t>(H);
    prior.T = static_cast<int64_t>(T);
    prior.form = form;
  }

 private:
  std::string name_;
};

std::vector<float> table_of(const TablePrior& prior) {
  GlobalArray<float> table(static_cast<size_t>(prior.H * prior.T));
  REQUIRE(kernels::table_prior_forward(table.data(), prior, nullptr).ok());
  return table.values();
}

constexpr float kBefore = 0.125f;  // what gradients hold before a backward pass

/// dtheta[p] for the `trained`; the others get no pointer and come back empty.
std::vector<std::vector<float>> gradients_of(const TablePrior& prior,
                                             const std::vector<float>& dtable,
                                             const std::vector<std::vector<float>>& theta,
                                             unsigned trained) {
  const size_t parameters = theta.size();
  const GlobalArray<float> on_device(dtable);
  std::vector<std::unique_ptr<GlobalArray<float>>> dtheta(parameters);
  TablePriorGradients g;
  g.dtable = on_device.data();
  for (size_t p = 0; p < parameters; ++p) {
    if ((trained >> p & 1) == 0) continue;
    const std::vector<float> before(theta[p].size(), kBefore);
    dtheta[p] = std::make_unique<GlobalArray<float>>(before);
    g.dtheta[p] = dtheta[p]->data();
  }
  REQUIRE(kernels::table_prior_backward(g, prior, nullptr).ok());
  std::vector<std::vector<float>> result(parameters);
  for (size_t p = 0; p < parameters; ++p) {
    if (dtheta[p]) result[p] = dtheta[p]->values();
  }
  return result;
}

/// Doubles and the pointers to them that the registries' functions take.
struct Doubles {
  std::vector<std::vector<double>> values;
  std::vector<const double*> read;
  std::vector<double*> written;

  explicit Doubles(const std::vector<std::vector<float>>& x) {
    for (const auto& v : x) values.emplace_back(v.begin(), v.end());
    for (auto& v : values) {
      read.push_back(v.data());
      written.push_back(v.data());
    }
  }
};

constexpr struct { size_t H, T; } kShapes[] = {{1, 1}, {3, 7}, {4, 256}, {12, 600}};

/// Rows of packed documents and a window.
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
  const GlobalArray<float> s(normal("s", c.H)), gradient(dscale);
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

TableShape shape_of(const PriorInfo& prior, const Options& o, size_t H, size_t T) {
  return {static_cast<int64_t>(H), static_cast<int64_t>(T), testing::form_of(prior, o)};
}

bool is_refused(const device::LaunchStatus& status) {
  return status.code == device::LaunchStatus::kRefused;
}

}  // namespace

TEST_CASE("every table prior of the registry has kernels that form its table") {
  size_t found = 0;
  for (const PriorInfo& prior : all_priors()) {
    if (prior.family != Family::table) continue;
    ++found;
    for (const Options& options : testing::every_form(prior)) {
      for (const auto& [H, T] : kShapes) {
        const TableShape shape = shape_of(prior, options, H, T);
        INFO(prior.name << " form " << shape.form << " H " << H << " T " << T);
        const auto theta = thetas_of(prior, options, H);
        const OnDevice on_device(prior.name, theta, H, T, shape.form);
        const std::vector<float> table = table_of(on_device.prior);
        std::vector<double> truth(H * T);
        prior.table(Doubles(theta).read.data(), shape, truth.data());
        size_t wrong = 0;
        for (size_t i = 0; i < truth.size(); ++i) wrong += table[i] != static_cast<float>(truth[i]);
        CHECK(wrong == 0);
      }
    }
  }
  CHECK(found >= 5);
}

TEST_CASE("tables of alibi and bam are their formulas") {
  const size_t H = 4, T = 300;
  const std::vector<float> alibi = table_of(OnDevice("alibi", {}, H, T).prior);
  const auto theta = thetas(3, H);
  const std::vector<float> bam = table_of(OnDevice("bam", theta, H, T).prior);
  double worst = 0;
  for (size_t h = 0; h < H; ++h) {
    const double amplitude = std::exp(double{theta[0][h]}), exponent = theta[1][h];
    const double location = 2 * std::sinh(double{theta[2][h]});
    for (size_t d = 0; d < T; ++d) {
      const double distance = static_cast<double>(d);
      const double of_alibi = -std::exp2(-2.0 * static_cast<double>(h + 1)) * distance;
      CHECK(alibi[h * T + d] == Approx(of_alibi).epsilon(kFp32));
      const double of_bam = -amplitude * std::pow(std::abs(-distance - location) + 1e-5, exponent);
      worst = std::max(worst, std::abs(bam[h * T + d] - of_bam) / std::abs(of_bam));
    }
  }
  CHECK(worst < kFp32 + 1e-12);
}

TEST_CASE("every table prior's gradients are the registry's, added to what is there") {
  for (const PriorInfo& prior : all_priors()) {
    if (prior.family != Family::table) continue;
    for (const Options& options : testing::every_form(prior)) {
      for (const auto& [H, T] : kShapes) {
        const TableShape shape = shape_of(prior, options, H, T);
        INFO(prior.name << " form " << shape.form << " H " << H << " T " << T);
        const auto theta = thetas_of(prior, options, H);
        const OnDevice on_device(prior.name, theta, H, T, shape.form);
        const std::vector<float> dtable = normal("dtable", H * T);
        std::vector<std::vector<float>> zeros;
        for (const auto& t : theta) zeros.emplace_back(t.size(), 0.0f);
        Doubles truth(zeros);
        const std::vector<double> dtable_doubles(dtable.begin(), dtable.end());
        prior.table_adjoint(Doubles(theta).read.data(), shape, dtable_doubles.data(),
                            truth.written.data());
        for (const unsigned trained : {0u, 1u, 5u, 7u}) {
          const auto found = gradients_of(on_device.prior, dtable, theta, trained);
          for (size_t p = 0; p < theta.size(); ++p) {
            REQUIRE(found[p].size() == ((trained >> p & 1) != 0 ? theta[p].size() : 0));
            for (size_t h = 0; h < found[p].size(); ++h) {
              // One rounding to fp32; the fp64 sums differ in their order.
              const double expected = kBefore + truth.values[p][h];
              CHECK(std::abs(found[p][h] - expected) <= kFp32 * std::abs(expected) + 1e-9);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gradients of bam are the derivatives of its formula") {
  const size_t T = 50;
  const auto theta = thetas(3, 1);
  const double ta = theta[0][0], tb = theta[1][0], tm = theta[2][0];
  const std::vector<float> dtable = normal("dtable", T);
  const auto weighted = [&](double a, double b, double m) {
    double sum = 0;
    for (size_t d = 0; d < T; ++d) {
      const double distance = std::abs(-static_cast<double>(d) - 2 * std::sinh(m));
      sum += dtable[d] * -std::exp(a) * std::pow(distance + 1e-5, b);
    }
    return sum;
  };
  const double e = 1e-5;
  const double truth[] = {(weighted(ta + e, tb, tm) - weighted(ta - e, tb, tm)) / (2 * e),
                          (weighted(ta, tb + e, tm) - weighted(ta, tb - e, tm)) / (2 * e),
                          (weighted(ta, tb, tm + e) - weighted(ta, tb, tm - e)) / (2 * e)};
  const auto found = gradients_of(OnDevice("bam", theta, 1, T).prior, dtable, theta, 7);
  for (size_t p = 0; p < 3; ++p) CHECK(found[p][0] - kBefore == Approx(truth[p]).epsilon(1e-5));
}

TEST_CASE("ssmax scales rows by the logarithm of what they see") {
  for (const ScaleCase& c : kScaleCases) {
    INFO("B " << c.B << " H " << c.H << " T " << c.T << " offset " << c.offset);
    const std::vector<float> s = normal("s", c.H);
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
    const std::vector<float> dscale = normal("dscale", c.B * c.H * c.T);
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
    if (scale.value == nullptr) continue;
    ++found;
    for (const ScaleCase& c : kScaleCases) {
      Options o = default_options(scale.options);
      if (o.has("lengths")) o.set("lengths", static_cast<double>(std::max<size_t>(c.T, 40) + 3));
      if (o.has("t")) o.set("t", 0.3);
      INFO(scale.name << " B " << c.B << " H " << c.H << " T " << c.T);
      const ScaleConstants constants = testing::constants_of(scale, o, static_cast<int64_t>(c.H));
      std::vector<std::vector<float>> theta, zeros;
      for (const MechanismParameter& p :
           scale.parameters(o, testing::shape_of(static_cast<int64_t>(c.H)))) {
        size_t n = 1;
        for (int64_t d : p.shape) n *= static_cast<size_t>(d);
        theta.push_back(normal(p.name, n));
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
      const std::vector<float> dt = normal("dt", c.B * c.H * c.T);
      const GlobalArray<float> dscale(dt);
      GlobalArray<float> t(dt.size());
      GlobalArray<double> scratch(
          static_cast<size_t>(kernels::scale_backward_scratch(rows.B, rows.H, rows.T)));
      g.dscale = dscale.data();
      g.scratch = scratch.data();
      REQUIRE(kernels::scale_forward(t.data(), rows, nullptr).ok());
      REQUIRE(kernels::scale_backward(g, rows, nullptr).ok());

      const Doubles values(theta);
      Doubles truth(zeros);
      const std::vector<float> scaled = t.values();
      size_t wrong = 0;
      for (size_t e = 0; e < dt.size(); ++e) {
        const size_t b = e / (c.H * c.T), h = e / c.T % c.H, i = e % c.T;
        const int64_t n = static_cast<int64_t>(i) - first[b * c.T + i] + 1;
        const auto head = static_cast<int64_t>(h);
        const double expected =
            h < c.first_head ? 1 : scale.value(constants, values.read.data(), head, n);
        // One rounding to fp32; fp64 functions of the host and the device may differ by an ulp.
        wrong += !(std::abs(scaled[e] - expected) <= kFp32 * (1 + 1e-6) * std::abs(expected));
        if (h < c.first_head) continue;
        scale.accumulate(constants, values.read.data(), head, n, dt[e], truth.written.data());
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

TEST_CASE("mechanisms have the same bits in every order of threads, warps and blocks") {
  const size_t H = 2, T = 700;
  const auto theta = thetas(3, H);
  const OnDevice bam("bam", theta, H, T);
  const std::vector<float> dtable = normal("dtable", H * T);
  const ScaleCase c{2, 2, 2500, 0};
  const std::vector<float> dscale = normal("dscale", c.B * c.H * c.T);
  const auto table = table_of(bam.prior);
  const auto dtheta = gradients_of(bam.prior, dtable, theta, 7);
  const auto ds = scale_gradient(c, dscale);
  for (const engine::Options& o : engine::schedules()) {
    const With with(o);
    CHECK(table_of(bam.prior) == table);
    CHECK(gradients_of(bam.prior, dtable, theta, 7) == dtheta);
    CHECK(scale_gradient(c, dscale) == ds);
  }
}

TEST_CASE("names without kernels, empty shapes and missing parameters are refused") {
  GlobalArray<float> f(64);
  GlobalArray<double> d(64);
  const GlobalArray<int32_t> first(std::vector<int32_t>(8, 0));
  TablePrior good;
  good.name = "bam";
  good.H = 2;
  good.T = 4;
  for (int p = 0; p < 3; ++p) good.theta[p] = f.data();
  const auto prior_refused = [&](auto change) {
    TablePrior prior = good;
    change(prior);
    TablePriorGradients g;
    g.dtable = f.data();
    const bool forward = is_refused(kernels::table_prior_forward(f.data() + 8, prior, nullptr));
    CHECK(forward == is_refused(kernels::table_prior_backward(g, prior, nullptr)));
    return forward;
  };
  CHECK_FALSE(prior_refused([](auto&) {}));
  for (const char* name : {"rope", "nope", "", "Bam"}) {
    CHECK(prior_refused([&](auto& p) { p.name = name; }));
  }
  CHECK(prior_refused([](auto& p) { p.name = nullptr; }));
  CHECK(prior_refused([](auto& p) { p.H = 0; }));
  CHECK(prior_refused([](auto& p) { p.H = 65536; }));
  CHECK(prior_refused([](auto& p) { p.T = 0; }));
  CHECK(prior_refused([](auto& p) { p.T = int64_t{1} << 31; }));
  CHECK(prior_refused([](auto& p) { p.theta[2] = nullptr; }));

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
