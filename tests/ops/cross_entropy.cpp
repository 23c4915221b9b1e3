#include <cmath>
#include <numeric>

#include "cases.h"
#include "catch.h"
#include "core/ignore_index.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("the adjoint of cross entropy agrees with finite differences") {
  for (int64_t V : {1, 2, 7, 16}) {
    for (bool in_place : {false, true}) {
      INFO("V " << V);
      check_differences(cross_entropy({5, V, 0, in_place}), 80);
    }
  }
}

TEST_CASE("cross entropy on the CPU agrees with the reference, wherever the logits lie") {
  for (int64_t V : {1, 7, 16, 33, 50257}) {
    for (double shift : {0.0, 1e4, -1e4}) {
      INFO("V " << V << ", logits shifted by " << shift);
      const int64_t R = V > 1000 ? 3 : 70;
      // exp with 3.4 u, sums in parts, one division. The loss is the difference of two numbers of
      // the size of the shift, computed in fp64 and rounded once.
      const double tolerance = 12 * kF32;
      compare_with_reference(cross_entropy({R, V, shift, false}), Dtype::f32, tolerance);
      compare_with_reference(cross_entropy({R, V, shift, true}), Dtype::f32, tolerance);
      compare_with_reference(cross_entropy({R, V, shift, false}), Dtype::bf16, tolerance);
    }
  }
}

TEST_CASE("equal logits lose log V, and their gradient sums to zero") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    Machine m(t);
    const int64_t V = 1000;
    const Memory z = m.memory(constant_values(Role::parameter, {2, V}, -3));
    const Memory targets = m.memory({Role::index, {2}, {0, 999}});
    const Memory losses = m.unwritten(Role::parameter, {2});
    m.backend().cross_entropy(losses.tensor(), z.tensor(), z.tensor(), targets.tensor(), 2);
    for (double loss : read(losses.tensor(), Role::parameter).x) {
      CHECK(loss == Approx(std::log(1000.0)).epsilon(1e-6));
    }
    const std::vector<double> d = read(z.tensor(), Role::parameter).x;
    CHECK(d[0] == Approx(2 * (0.001 - 1)).epsilon(1e-6));
    CHECK(d[1] == Approx(0.002).epsilon(1e-6));
    CHECK(d[1999] == Approx(2 * (0.001 - 1)).epsilon(1e-6));
    for (int64_t r = 0; r < 2; ++r) {
      CHECK(std::abs(std::accumulate(d.begin() + r * V, d.begin() + (r + 1) * V, 0.0)) < 1e-5);
    }
  }
}

TEST_CASE("a row without a target has no loss and no gradient, whatever its logits") {
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Machine m(t);
    const Memory z = m.memory({Role::parameter, {2, 3}, {1, std::nan(""), HUGE_VAL, 1, 2, 3}});
    const Memory targets = m.memory({Role::index, {2}, {kIgnoreIndex, 2}});
    const Memory losses = m.unwritten(Role::parameter, {2});
    const Memory dz = m.unwritten(Role::activation, {2, 3});
    m.backend().cross_entropy(losses.tensor(), dz.tensor(), z.tensor(), targets.tensor(), 1);
    const std::vector<double> loss = read(losses.tensor(), Role::parameter).x;
    const std::vector<double> d = read(dz.tensor(), Role::activation).x;
    CHECK(loss[0] == 0);
    CHECK(loss[1] == Approx(std::log(1 + std::exp(-1.0) + std::exp(-2.0))).epsilon(1e-6));
    CHECK(std::vector<double>(d.begin(), d.begin() + 3) == std::vector<double>{0, 0, 0});
    CHECK(d[5] < 0);
  }
}

TEST_CASE("a logit that is not finite shows in the loss") {
  for (double bad : {std::nan(""), HUGE_VAL}) {
    for (int64_t at : {0, 5, 40}) {
      Machine m(Dtype::f32);
      Values z = constant_values(Role::parameter, {1, 41}, 1);
      z.x[static_cast<size_t>(at)] = bad;
      const Memory logits = m.memory(z), targets = m.memory({Role::index, {1}, {3}});
      const Memory losses = m.zeros(Role::parameter, {1});
      m.backend().cross_entropy(losses.tensor(), {}, logits.tensor(), targets.tensor(), 1);
      CHECK_FALSE(std::isfinite(losses.tensor().ptr<float>()[0]));
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
