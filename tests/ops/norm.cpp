#include <cmath>

#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

template <class F>
void for_forms(F&& f) {
  for (NormKind kind : {NormKind::rmsnorm, NormKind::layernorm}) {
    for (bool bias : {false, true}) {
      if (bias && kind == NormKind::rmsnorm) continue;  // rmsnorm has none
      for (bool branch : {false, true}) {
        INFO((kind == NormKind::rmsnorm ? "rmsnorm" : "layernorm")
             << ", bias " << bias << ", branch " << branch);
        f(kind, bias, branch);
      }
    }
  }
}

TEST_CASE("the adjoint of either norm agrees with finite differences") {
  for_forms([](NormKind kind, bool bias, bool branch) {
    for (int64_t C : {5, 16, 40}) {
      INFO("C " << C);
      check_differences(norm({kind, 3, C, bias, branch}));
    }
  });
}

TEST_CASE("norms on the CPU agree with the reference for ragged widths") {
  for_forms([](NormKind kind, bool bias, bool branch) {
    for (int64_t C : {1, 5, 16, 40, 768}) {
      for (int64_t N : {1, 67, 200}) {
        INFO("C " << C << ", N " << N);
        const Operation op = norm({kind, N, C, bias, branch});
        // Mean, variance, root, products: about ten roundings in sequence; sums over C and N in
        // parts (see linear.cpp).
        const double tolerance = kF32 * (10 + 1.5 * std::sqrt(static_cast<double>(C + N)));
        compare_with_reference(op, tolerance);
      }
    }
  });
}

TEST_CASE("without a branch the stream may stay where it is") {
  const Operation op = norm({NormKind::rmsnorm, 9, 40, false, false});
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    const Arrays apart = op.forward(m, op.inputs);
    const Memory x = m.memory(op.inputs.at("residual")), w = m.memory(op.inputs.at("weight"));
    const Memory y = m.unwritten(Role::activation, {9, 40});
    const Memory stats = m.unwritten(Role::parameter, {9, 2});
    m.backend().norm_forward(x.tensor(), y.tensor(), stats.tensor(), x.tensor(), {}, w.tensor(), {},
                             NormKind::rmsnorm, 1e-5);
    check_equal(read(y.tensor(), Role::activation).x, apart.at("y").x);
    check_equal(read(x.tensor(), Role::activation).x, op.inputs.at("residual").x);
  }
}

TEST_CASE("a row of equal numbers has the norms that its formulas give") {
  // rmsnorm: x / sqrt(x^2 + eps), exact with eps 0; layernorm: only the bias.
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    const double unit = t == Dtype::f64 ? 0x1p-53 : kF32;
    const Memory x = m.memory(constant_values(Role::activation, {2, 40}, -4));
    const Memory w = m.memory(constant_values(Role::parameter, {40}, 0.5));
    const Memory b = m.memory(constant_values(Role::parameter, {40}, 0.25));
    const Memory sum = m.unwritten(Role::activation, {2, 40}),
                 y = m.zeros(Role::activation, {2, 40});
    const Memory stats = m.unwritten(Role::parameter, {2, 2});
    m.backend().norm_forward(sum.tensor(), y.tensor(), stats.tensor(), x.tensor(), {}, w.tensor(),
                             {}, NormKind::rmsnorm, 0);
    CHECK(read(y.tensor(), Role::activation).x == std::vector<double>(80, -0.5));
    CHECK(read(stats.tensor(), Role::parameter).x == std::vector<double>{0, 0.25, 0, 0.25});
    m.backend().norm_forward(sum.tensor(), y.tensor(), stats.tensor(), x.tensor(), {}, w.tensor(),
                             b.tensor(), NormKind::layernorm, 1);
    // The mean of forty equal numbers is off by one or two roundings.
    check_close("y", read(y.tensor(), Role::activation),
                constant_values(Role::activation, {2, 40}, 0.25), 8 * unit, 4);
    check_close("stats", read(stats.tensor(), Role::parameter),
                {Role::parameter, {2, 2}, {-4, 1, -4, 1}}, 8 * unit);
  }
}

}  // namespace
}  // namespace bamtrain::testing
