// Results of priors and scales on the CPU backend, compared with the reference, which shares no
// formula and no adjoint with it.

#include "catch.h"
#include "mechanisms.h"
#include "ops/reference/dual.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("gradients of every mechanism's parameters on the CPU agree with the reference") {
  constexpr int64_t kT = 200;
  WorkspaceShape shape = mechanism_workspace(kT);
  shape.bidirectional = true;
  Machine reference(Dtype::f64, kNewestIsa, shape), cpu(Dtype::f32, kNewestIsa, shape);
  for (const std::vector<Mechanisms>& all : {all_mechanisms(), bidirectional_mechanisms()}) {
    for (const Mechanisms& of : all) {
      INFO(of.prior.name << " with " << of.scale.name << (of.causal ? "" : ", bidirectional"));
      // Attention is fp32. See tests/cuda/mechanisms.cpp.
      check_near(parameter_gradients(cpu, of, kT), parameter_gradients(reference, of, kT), 1e-4);
    }
  }
}

TEST_CASE("tables and scales of many rows on the CPU agree with the reference") {
  constexpr int64_t kB = 3, kT = 1500;
  WorkspaceShape shape = mechanism_workspace(kT);
  shape.B = kB;
  shape.bidirectional = true;
  Machine reference(Dtype::f64, kNewestIsa, shape), cpu(Dtype::f32, kNewestIsa, shape);
  for (const std::vector<Mechanisms>& all : {all_mechanisms(), bidirectional_mechanisms()}) {
    for (const Mechanisms& of : all) {
      INFO(of.prior.name << " with " << of.scale.name << (of.causal ? "" : ", bidirectional"));
      // Parameters and results are rounded to fp32, everything else is fp64.
      check_near(tables_and_scales(cpu, of, kB, kT), tables_and_scales(reference, of, kB, kT),
                 1e-5);
    }
  }
}

TEST_CASE("dual numbers have the derivatives that differences have") {
  using dual::Dual;
  Dual (*const functions[])(Dual) = {
      [](Dual x) { return 2 + x * x - 3 * x; },        [](Dual x) { return x / (1 + x * x); },
      [](Dual x) { return -exp(x) * log(3 + x); },     [](Dual x) { return log1p(x * x); },
      [](Dual x) { return tanh(x) * abs(x - 0.5); },   [](Dual x) { return pow(2 + x, x); },
      [](Dual x) { return pow(abs(x) + 1e-5, -0.7); }, [](Dual x) { return softplus(5 * x); }};
  for (const auto& f : functions) {
    for (const double x : {-1.3, -0.2, 0.3, 0.9, 1.7}) {
      const double h = 1e-5, difference = (f(x + h).x - f(x - h).x) / (2 * h);
      INFO("function " << &f - functions << " at " << x);
      CHECK(std::abs(f({x, 1}).d - difference) <= 1e-8 * (1 + std::abs(difference)));
      CHECK(f({x, 2}).d == 2 * f({x, 1}).d);
      CHECK(f(x).d == 0);
    }
  }
  CHECK(pow(Dual(0), Dual(0.5, 1)).x == 0);
  CHECK(pow(Dual(0), Dual(0.5, 1)).d == 0);
}

}  // namespace
}  // namespace bamtrain::testing
