// Prior tables on the engine, compared with closed forms and the host's registry.

#include "kernels/prior_table.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "engine/support.h"
#include "mechanism_values.h"
#include "priors/differences.h"
#include "priors/registry.h"

using namespace bamtrain;
using namespace bamtrain::test;
using engine::GlobalArray;
using engine::ScopedOptions;
using kernels::TablePrior;
using kernels::TablePriorGradients;

namespace {

/// theta[p][h] for a prior with `parameters` parameters.
std::vector<std::vector<float>> thetas(size_t parameters, size_t H) {
  std::vector<std::vector<float>> all;
  for (size_t p = 0; p < parameters; ++p) all.push_back(drawn("theta" + std::to_string(p), H));
  return all;
}

/// Values within the limits of the prior's parameters, in their shapes for H heads.
std::vector<std::vector<float>> thetas_of(const PriorInfo& prior, const Options& o, size_t H) {
  std::vector<std::vector<float>> all;
  for (const MechanismParameter& p :
       prior.parameters(o, testing::shape_of(static_cast<int64_t>(H)))) {
    size_t n = 1;
    for (int64_t d : p.shape) n *= static_cast<size_t>(d);
    std::vector<float>& theta = all.emplace_back(drawn(p.name, n));
    for (float& x : theta) {
      if (x < p.minimum) x = static_cast<float>(p.minimum) - x;
    }
  }
  return all;
}

/// theta on the device, and a TablePrior that points to it.
struct OnDevice {
  std::vector<std::unique_ptr<GlobalArray<float>>> arrays;
  TablePrior prior;

  OnDevice(const std::string& name, const std::vector<std::vector<float>>& theta, size_t H,
           size_t T, int form = 0, double gain = 1)
      : name_(name) {
    for (size_t p = 0; p < theta.size(); ++p) {
      arrays.push_back(std::make_unique<GlobalArray<float>>(theta[p]));
      prior.theta[p] = arrays[p]->data();
    }
    prior.name = name_.c_str();
    prior.H = static_cast<int64_t>(H);
    prior.T = static_cast<int64_t>(T);
    prior.form = form;
    prior.gain = gain;
  }

 private:
  std::string name_;
};

std::vector<float> table_of(const TablePrior& prior) {
  GlobalArray<float> table(static_cast<size_t>(prior.H * prior.T));
  REQUIRE(kernels::table_prior_forward(table.data(), prior, nullptr).ok());
  return table.values();
}

/// dtheta[p] for each p in the bit mask `trained`; the others get no pointer and are returned
/// empty.
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

constexpr struct { size_t H, T; } kShapes[] = {{1, 1}, {3, 7}, {4, 256}, {12, 600}};

TableShape shape_of(const PriorInfo& prior, const Options& o, size_t H, size_t T) {
  return table_shape(prior, o, testing::shape_of(static_cast<int64_t>(H)), static_cast<int64_t>(T));
}

}  // namespace

TEST_CASE("every table prior of the registry has kernels that form its table") {
  size_t found = 0;
  for (const PriorInfo& prior : all_priors()) {
    const auto* const family = prior.as<TableFamily>();
    if (!family) continue;
    ++found;
    for (const Options& options : testing::every_form(prior)) {
      for (const auto& [H, T] : kShapes) {
        if (H == 1 && prior.name == "nape") continue;  // refused
        const TableShape shape = shape_of(prior, options, H, T);
        INFO(prior.name << " form " << shape.form << " H " << H << " T " << T);
        const auto theta = thetas_of(prior, options, H);
        const OnDevice on_device(prior.name, theta, H, T, shape.form, shape.gain);
        const std::vector<float> table = table_of(on_device.prior);
        std::vector<double> truth(H * T);
        family->table(Pointed(theta).read.data(), shape, truth.data());
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
    const auto* const family = prior.as<TableFamily>();
    if (!family) continue;
    for (const Options& options : testing::every_form(prior)) {
      for (const auto& [H, T] : kShapes) {
        if (H == 1 && prior.name == "nape") continue;  // refused
        const TableShape shape = shape_of(prior, options, H, T);
        INFO(prior.name << " form " << shape.form << " H " << H << " T " << T);
        const auto theta = thetas_of(prior, options, H);
        const OnDevice on_device(prior.name, theta, H, T, shape.form, shape.gain);
        const std::vector<float> dtable = drawn("dtable", H * T);
        std::vector<std::vector<float>> zeros;
        for (const auto& t : theta) zeros.emplace_back(t.size(), 0.0f);
        Pointed truth(zeros);
        const std::vector<double> dtable_doubles(dtable.begin(), dtable.end());
        family->adjoint(Pointed(theta).read.data(), shape, dtable_doubles.data(),
                        truth.written.data());
        for (const unsigned trained : {0u, 1u, 5u, 7u}) {
          const auto found = gradients_of(on_device.prior, dtable, theta, trained);
          for (size_t p = 0; p < theta.size(); ++p) {
            REQUIRE(found[p].size() == ((trained >> p & 1) != 0 ? theta[p].size() : 0));
            for (size_t h = 0; h < found[p].size(); ++h) {
              // One rounding to fp32; the fp64 sums differ in order.
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
  const std::vector<float> dtable = drawn("dtable", T);
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

TEST_CASE("prior tables have the same bits in every order of threads, warps and blocks") {
  const size_t H = 2, T = 700;
  const auto theta = thetas(3, H);
  const OnDevice bam("bam", theta, H, T);
  const std::vector<float> dtable = drawn("dtable", H * T);
  const auto table = table_of(bam.prior);
  const auto dtheta = gradients_of(bam.prior, dtable, theta, 7);
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    CHECK(table_of(bam.prior) == table);
    CHECK(gradients_of(bam.prior, dtable, theta, 7) == dtheta);
  }
}

TEST_CASE("priors without kernels, empty tables and missing parameters are refused") {
  GlobalArray<float> f(64);
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
}
