// Results of priors and scales on the CPU backend, compared with the reference, which shares no
// formula and no adjoint with it.

#include "catch.h"
#include "mechanisms.h"
#include "ops/reference/autodiff.h"

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

TEST_CASE("derivatives of the reference's functions are those that differences have") {
  using autodiff::Tape, autodiff::Var;
  Var (*const functions[])(Var) = {
      [](Var x) { return 2 + x * x - 3 * x; },        [](Var x) { return x / (1 + x * x); },
      [](Var x) { return -exp(x) * log(3 + x); },     [](Var x) { return log1p(x * x); },
      [](Var x) { return tanh(x) * abs(x - 0.5); },   [](Var x) { return pow(2 + x, x); },
      [](Var x) { return pow(abs(x) + 1e-5, -0.7); }, [](Var x) { return softplus(5 * x); },
      [](Var x) { return sigmoid(x) * erfc(x); }};
  const auto derivative = [](const auto& f, double x, double dy) {
    Tape tape;
    double dx = 0;
    tape.seed(f(Var(x, &dx, &tape)), dy);
    tape.backward();
    return dx;
  };
  for (const auto& f : functions) {
    for (const double x : {-1.3, -0.2, 0.3, 0.9, 1.7}) {
      const double h = 1e-5, difference = (f(x + h).x - f(x - h).x) / (2 * h);
      INFO("function " << &f - functions << " at " << x);
      CHECK(std::abs(derivative(f, x, 1) - difference) <= 1e-8 * (1 + std::abs(difference)));
      CHECK(derivative(f, x, 2) == 2 * derivative(f, x, 1));
      CHECK(f(x).d == nullptr);
    }
  }
  CHECK(pow(Var(0), 0.5).x == 0);
  CHECK(derivative([](Var x) { return pow(0, x); }, 0.5, 1) == 0);
}

TEST_CASE("a tape adds the derivatives of several results to several inputs") {
  using autodiff::Array, autodiff::Tape, autodiff::Var;
  const double x[] = {2, 3, 5, 7};
  double d[] = {100, 0, 0, 0};
  Tape tape;
  const Array all = {x, d}, odd = {x + 1, d + 1, 2};
  const Var product = dot(&tape, 2, all, odd);  // 2 * 3 + 3 * 7
  CHECK(product.x == 27);
  tape.seed(product, 1);
  tape.seed(dot(&tape, all, {product, Var(x[3], d + 3, &tape)}), 10);  // 2 * 27 + 3 * 7
  tape.backward();
  CHECK(d[0] == 100 + 3 * 21 + 10 * 27);
  CHECK(d[1] == (2 + 7) * 21 + 10 * 7);
  CHECK(d[2] == 0);
  CHECK(d[3] == 3 * 21 + 10 * 3);
  tape.backward();  // the tape is empty
  CHECK(d[0] == 100 + 3 * 21 + 10 * 27);
}

}  // namespace
}  // namespace bamtrain::testing
