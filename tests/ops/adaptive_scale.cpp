// Logit scales from a row's gates.

#include <cmath>

#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

constexpr AdaptiveCase kCases[] = {
    {1, 1, 1}, {2, 17, 3}, {2, 40, 3, true}, {3, 70, 4, true, 2}, {1, 40, 5, false, 3}};

TEST_CASE("the adjoint of an adaptive scale agrees with finite differences") {
  for (const AdaptiveCase& c : kCases) {
    INFO("T " << c.T << ", bias " << c.bias << ", first head " << c.first_head);
    check_differences(adaptive_scale(c), 1000);
  }
}

TEST_CASE("an adaptive scale on the CPU agrees with the reference") {
  // Everything is computed in fp64: only storing in fp32 rounds.
  for (const AdaptiveCase& c : kCases) {
    compare_with_reference(adaptive_scale(c), 2 * kF32);
  }
}

TEST_CASE("heads before the first that is scaled have t = 1 and no gradient") {
  const AdaptiveCase c = {2, 40, 5, true, 3};
  const Operation op = adaptive_scale(c);
  Machine m(Dtype::f32);
  const std::vector<double> t = op.forward(m, op.inputs).at("scale").x;
  const Arrays dt{{"scale", random_values(Role::parameter, {c.B, c.H, c.T}, "dt")}};
  const Arrays d = op.adjoint(m, op.inputs, {}, dt, 0);
  int64_t ones = 0;
  for (size_t e = 0; e < t.size(); ++e) ones += t[e] == 1;
  CHECK(ones == c.B * c.first_head * c.T);
  for (size_t e = 0; e < d.at("gates").x.size(); ++e) {
    const bool scaled = static_cast<int64_t>(e) % c.H >= c.first_head;
    if ((d.at("gates").x[e] != 0) != scaled) FAIL("gate " << e);
  }
  for (const char* bias : {"beta_bias", "gamma_bias"}) {
    for (size_t h = 0; h < 5; ++h) CHECK((d.at(bias).x[h] != 0) == (h >= 3));
  }
}

TEST_CASE("an adaptive scale has the same bits for any number of threads") {
  check_same_for_any_threads(adaptive_scale({2, 100, 5, true, 1}), Dtype::bf16);
}

}  // namespace
}  // namespace bamtrain::testing
