// Running sums of gates, and attention that reads them, over long sequences.

#include <cmath>

#include "attention_case.h"
#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("the adjoint of running sums agrees with finite differences") {
  for (bool queries : {false, true}) {
    CHECK(difference_error(running_sums({2, 9, 3, queries}), 60) < kDifferenceTolerance);
  }
}

TEST_CASE("running sums on the CPU agree with the reference") {
  // Everything is summed in fp64: one rounding of what is stored in fp32.
  for (const SumsCase& c : {SumsCase{1, 1, 1}, {2, 40, 3}, {3, 300, 5, true}}) {
    compare_with_reference(running_sums(c), Dtype::f32, 2 * kF32);
    compare_with_reference(running_sums(c), Dtype::bf16, 2 * kF32);
  }
}

TEST_CASE("running sums are exact over 500,000 tokens") {
  const int64_t T = 500'000;
  Operation op = running_sums({1, T, 1});
  op.inputs["bias"].x[0] = 0.25;
  for (double& g : op.inputs["gates"].x) g = 1.5;
  const double u = std::log1p(std::exp(1.75));
  for (Dtype t : {Dtype::f32, Dtype::f64}) {
    Machine m(t);
    const std::vector<double> S = op.forward(m, op.inputs).at("sums").x;
    double worst = 0;
    for (int64_t n = 0; n < T; ++n) {
      const double exact = static_cast<double>(n + 1) * u;
      worst = std::max(worst, std::abs(S[static_cast<size_t>(n)] - exact) / exact);
    }
    // At most T roundings; the differences that attention reads near the diagonal are as good.
    CHECK(worst < static_cast<double>(T) * 0x1p-53);
    CHECK(std::abs(S[T - 1] - S[T - 101] - 100 * u) < 1e-8);
  }
}

TEST_CASE("attention reads sums past a million as exactly as small ones") {
  for (TableForm table : {TableForm::difference, TableForm::log_square}) {
    AttentionCase c;
    c.B = 2;
    c.T = 200;
    c.H = 2;
    c.K = 1;
    c.D = 16;
    c.table = table;
    c.documents = true;
    Operation near = attention(c), far = near;
    for (double& S : near.inputs["sums"].x) S = std::round(S * 1024) / 1024;
    far.inputs["sums"] = near.inputs["sums"];
    for (double& S : far.inputs["sums"].x) S += 0x1p21;  // exact
    Machine m(Dtype::f32);
    const Arrays a = near.forward(m, near.inputs), b = far.forward(m, far.inputs);
    check_equal(b.at("out").x, a.at("out").x);
    const Arrays dout{{"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout")}};
    const Arrays da = near.adjoint(m, near.inputs, a, dout, 0);
    const Arrays db = far.adjoint(m, far.inputs, b, dout, 0);
    for (const auto& [name, v] : da) check_equal(db.at(name).x, v.x);
  }
}

TEST_CASE("running sums have the same bits for any number of threads") {
  CHECK(same_for_any_threads(running_sums({2, 100, 5, true}), Dtype::bf16));
}

}  // namespace
}  // namespace bamtrain::testing
