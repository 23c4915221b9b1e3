#include <algorithm>
#include <cmath>

#include "cases.h"
#include "catch.h"
#include "ops/cpu/matmul.h"

namespace bamtrain::testing {
namespace {

/// A sum of n products in fp32. Each addition rounds the partial sum, which grows as sqrt(k), so
/// the error relative to the result, of size sqrt(n), is about 0.3 u sqrt(n). Five times that for
/// the largest of many elements, and a few roundings of inputs and outputs.
double sum_tolerance(int64_t n) { return kF32 * (4 + 1.5 * std::sqrt(static_cast<double>(n))); }

double linear_tolerance(const LinearCase& c) { return sum_tolerance(std::max({c.N, c.O, c.I})); }

TEST_CASE("linear's adjoint agrees with finite differences") {
  for (const LinearCase& c : {LinearCase{1, 1, 1, true}, LinearCase{5, 7, 3, true},
                              LinearCase{4, 3, 9, false}, LinearCase{9, 2, 6, true}}) {
    INFO("N " << c.N << ", O " << c.O << ", I " << c.I);
    check_differences(linear(c));
  }
}

TEST_CASE("linear on the CPU agrees with the reference at every edge of its tiles") {
  int64_t n = 0;
  for (int64_t N : {1, 2, 3, 4, 5, 63, 256, 257, 600}) {
    for (int64_t O : {1, 383, 385, 800}) {
      // Inner sizes alternate, so that every outer pair is tested with a small and a large one.
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
    check_differences(linear({5, c.O % 7, 3, c.bias, c.gap}));
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

/// c + A^T B or c + A B in fp64, from fp32 memory.
Values product_truth(Values c, const Matrix& a, const Matrix& b, int64_t first_column) {
  const auto at = [](const Matrix& x, int64_t row, int64_t column) {
    const auto* data = static_cast<const float*>(x.data);
    return static_cast<double>(data[x.transposed ? column * x.ld + row : row * x.ld + column]);
  };
  const auto width = static_cast<int64_t>(c.x.size()) / a.rows;
  for (int64_t m = 0; m < a.rows; ++m) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t n = 0; n < b.columns; ++n) {
        c.x[static_cast<size_t>(m * width + first_column + n)] += at(a, m, k) * at(b, k, n);
      }
    }
  }
  return c;
}

TEST_CASE("a matrix product reads and writes parts of wider matrices and leaves the rest alone") {
  const Machine cpu(Dtype::f32);
  const Memory a = cpu.memory(random_values(Role::activation, {70, 50}, "a"));
  const Memory b = cpu.memory(random_values(Role::activation, {40, 90}, "b"));
  const Memory c = cpu.memory(constant_values(Role::activation, {70, 100}, 3));
  const Tensor part_a = a.tensor().slice(1, 5, 40), part_b = b.tensor().slice(1, 11, 66);
  Matmul product;
  product.run(matrix(c.tensor().slice(1, 20, 66)), matrix(part_a), matrix(part_b), nullptr, true);
  check_close("c", read(c.tensor(), Role::activation),
              product_truth(constant_values(Role::activation, {70, 100}, 3), matrix(part_a),
                            matrix(part_b), 20),
              sum_tolerance(40));
}

TEST_CASE("a matrix product of rows that begin in few sets of a cache is that of any others") {
  // Widths that are multiples of 256 floats are copied first, in slices of the inner dimension.
  struct Case {
    int64_t M, N, K, width_a, width_b;
    bool a_transposed;
  };
  Matmul product;  // shared: state of one product must not affect the next
  for (const Case& s : {Case{150, 130, 1100, 768, 1024, true}, Case{150, 130, 1100, 256, 300, true},
                        Case{150, 130, 513, 300, 512, true}, Case{300, 390, 31, 512, 512, true},
                        Case{270, 129, 700, 700, 256, false}, Case{64, 65, 512, 256, 256, true},
                        Case{63, 130, 600, 256, 256, true}, Case{130, 63, 600, 256, 256, true}}) {
    INFO("M " << s.M << ", N " << s.N << ", K " << s.K << ", widths " << s.width_a << " and "
              << s.width_b << ", A transposed " << s.a_transposed);
    const Machine cpu(Dtype::f32);
    const Memory wide_a =
        cpu.memory(random_values(Role::activation, {s.a_transposed ? s.K : s.M, s.width_a}, "a"));
    const Memory wide_b = cpu.memory(random_values(Role::activation, {s.K, s.width_b}, "b"));
    const int64_t a_columns = s.a_transposed ? s.M : s.K, gap = s.width_a > a_columns ? 1 : 0;
    const Tensor part_a = wide_a.tensor().slice(1, gap, a_columns);
    const Matrix a = s.a_transposed ? matrix_transposed(part_a) : matrix(part_a);
    const Matrix b = matrix(wide_b.tensor().slice(1, s.width_b - s.N, s.N));
    const Values before = constant_values(Role::activation, {s.M, s.N + 7}, 3);
    for (bool accumulate : {true, false}) {
      const Memory c = cpu.memory(before);
      product.run(matrix(c.tensor().slice(1, 5, s.N)), a, b, nullptr, accumulate);
      Values start = before;
      for (int64_t m = 0; m < s.M && !accumulate; ++m) {
        for (int64_t n = 0; n < s.N; ++n) start.x[static_cast<size_t>(m * (s.N + 7) + 5 + n)] = 0;
      }
      check_close("c", read(c.tensor(), Role::activation), product_truth(start, a, b, 5),
                  sum_tolerance(s.K));
      for (const Memory* operand : {&wide_a, &wide_b}) {
        float* x = operand->tensor().ptr<float>();
        for (int64_t i = 0; i < operand->tensor().size(); ++i) x[i] = 1 - 2 * x[i];
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
