#include <algorithm>
#include <cmath>

#include "cases.h"
#include "catch.h"
#include "ops/cpu/matmul.h"

namespace bamtrain::testing {
namespace {

/// A sum of n products in fp32: each addition rounds the partial sum, which grows as sqrt(k), so
/// the error relative to the result, of size sqrt(n), is about 0.3 u sqrt(n). Five times that for
/// the largest of many elements, and a few roundings of inputs and outputs.
double sum_tolerance(int64_t n) { return kF32 * (4 + 1.5 * std::sqrt(static_cast<double>(n))); }

double linear_tolerance(const LinearCase& c) { return sum_tolerance(std::max({c.N, c.O, c.I})); }

TEST_CASE("linear's adjoint agrees with finite differences") {
  for (const LinearCase& c : {LinearCase{1, 1, 1, true}, LinearCase{5, 7, 3, true},
                              LinearCase{4, 3, 9, false}, LinearCase{9, 2, 6, true}}) {
    INFO("N " << c.N << ", O " << c.O << ", I " << c.I);
    CHECK(difference_error(linear(c)) < kDifferenceTolerance);
  }
}

TEST_CASE("linear on the CPU agrees with the reference at every edge of its tiles") {
  int64_t n = 0;
  for (int64_t N : {1, 2, 3, 4, 5, 63, 256, 257, 600}) {
    for (int64_t O : {1, 383, 385, 800}) {
      // Inner sizes alternate, so that every outer pair meets a small and a large one.
      for (int64_t I : {n % 2 ? 1 : 7, n % 2 ? 129 : 64}) {
        const LinearCase c{N, O, I, n % 3 != 0};
        ++n;
        INFO("N " << N << ", O " << O << ", I " << I << ", bias " << c.bias);
        for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
          compare_with_reference(linear(c), t, linear_tolerance(c));
        }
      }
    }
  }
}

TEST_CASE("rows of outputs may lie apart, with a bias too, and nothing between them is touched") {
  for (const LinearCase& c : {LinearCase{70, 2, 24, true, 62}, LinearCase{300, 385, 33, true, 63},
                              LinearCase{9, 5, 40, false, 3}}) {
    INFO("N " << c.N << ", O " << c.O << ", gap " << c.gap);
    CHECK(difference_error(linear({5, c.O % 7, 3, c.bias, c.gap})) < kDifferenceTolerance);
    for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
      compare_with_reference(linear(c), t, linear_tolerance(c));
    }
  }
}

TEST_CASE("logits are fp32 from bf16 operands") {
  if (with_products({Dtype::bf16}).empty()) return;
  const Values x = random_values(Role::activation, {65, 96}, "x");
  const Values w = random_values(Role::activation, {131, 96}, "w");
  Machine cpu(Dtype::bf16), reference(Dtype::f64);
  const Memory cpu_x = cpu.memory(x), cpu_w = cpu.memory(w);
  const Memory reference_x = reference.memory(read(cpu_x.tensor(), Role::activation));
  const Memory reference_w = reference.memory(read(cpu_w.tensor(), Role::activation));
  const Memory found = cpu.unwritten(Role::parameter, {65, 131});
  const Memory truth = reference.unwritten(Role::parameter, {65, 131});
  REQUIRE(found.tensor().dtype == Dtype::f32);
  cpu.backend().linear_forward(found.tensor(), cpu_x.tensor(), cpu_w.tensor(), {});
  reference.backend().linear_forward(truth.tensor(), reference_x.tensor(), reference_w.tensor(),
                                     {});
  check_close("logits", read(found.tensor(), Role::parameter),
              read(truth.tensor(), Role::parameter), sum_tolerance(96));
}

TEST_CASE("a matrix product reads and writes parts of wider matrices and leaves the rest alone") {
  const Machine cpu(Dtype::f32);
  const Memory a = cpu.memory(random_values(Role::activation, {70, 50}, "a"));
  const Memory b = cpu.memory(random_values(Role::activation, {40, 90}, "b"));
  const Memory c = cpu.memory(constant_values(Role::activation, {70, 100}, 3));
  const Tensor part_a = a.tensor().slice(1, 5, 40), part_b = b.tensor().slice(1, 11, 66);
  Matmul product;
  product.run(matrix(c.tensor().slice(1, 20, 66)), matrix(part_a), matrix(part_b), nullptr, true);
  Values truth = constant_values(Role::activation, {70, 100}, 3);
  for (int64_t m = 0; m < 70; ++m) {
    for (int64_t n = 0; n < 66; ++n) {
      for (int64_t k = 0; k < 40; ++k) {
        truth.x[static_cast<size_t>(m * 100 + 20 + n)] +=
            static_cast<double>(a.tensor().ptr<float>()[m * 50 + 5 + k]) *
            static_cast<double>(b.tensor().ptr<float>()[k * 90 + 11 + n]);
      }
    }
  }
  check_close("c", read(c.tensor(), Role::activation), truth, sum_tolerance(40));
}

}  // namespace
}  // namespace bamtrain::testing
