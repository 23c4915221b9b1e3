// zero, add, convert, squares.

#include <bit>
#include <cmath>
#include <limits>

#include "catch.h"
#include "compare.h"
#include "roles.h"

namespace bamtrain::testing {
namespace {

bool is_nan(uint16_t bits) { return (bits & 0x7FFFu) > 0x7F80u; }
double value_of(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(uint32_t{bits} << 16));
}

/// The bf16 nearest to a finite f, by comparing distances in fp64, ties to even. The candidates are
/// the two patterns around f; the one past the largest finite number stands for 2^128.
uint16_t nearest_bf16(float f) {
  const auto down = static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16);
  const auto up = static_cast<uint16_t>(down + 1);
  const double x = std::abs(static_cast<double>(f));
  const auto size = [](uint16_t bits) {
    const auto magnitude = static_cast<uint16_t>(bits & 0x7FFFu);
    return magnitude == 0x7F80u ? 0x1p128 : value_of(magnitude);
  };
  const double below = x - size(down), above = size(up) - x;
  if (below != above) return below < above ? down : up;
  return down % 2 == 0 ? down : up;
}

TEST_CASE(
    "conversion to bf16 rounds to nearest even, ties, denormals, infinities and NaN included") {
  // Every upper half, with lower halves at and near the ties.
  std::vector<float> in;
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (uint32_t lower : {0x0000u, 0x0001u, 0x4321u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      in.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<bf16> out(in.size());
  const auto n = static_cast<int64_t>(in.size());
  Machine cpu(Dtype::bf16);
  cpu.backend().convert(Tensor(out.data(), Dtype::bf16, {n}), Tensor(in.data(), Dtype::f32, {n}));
  int64_t wrong = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint16_t bits = out[i].bits, scalar = bf16(in[i]).bits;
    const bool right = std::isnan(in[i]) ? is_nan(bits) && is_nan(scalar)
                       : std::isinf(in[i])
                           ? value_of(bits) == static_cast<double>(in[i]) && bits == scalar
                           : bits == nearest_bf16(in[i]) && bits == scalar;
    wrong += !right;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 numbers survive conversion to fp32 and back") {
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    bf16 x;
    x.bits = static_cast<uint16_t>(bits);
    const bf16 back(static_cast<float>(x));
    wrong += is_nan(x.bits) ? !is_nan(back.bits) : back.bits != x.bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("conversion to the same dtype copies, whatever the length") {
  for (Dtype t : {Dtype::f32, Dtype::f64}) {
    Machine m(t);
    for (int64_t n : {1, 15, 16, 17, 100000}) {
      const Memory in = m.memory(random_values(P, {n}, "in")), out = m.unwritten(P, {n});
      m.backend().convert(out.tensor(), in.tensor());
      check_equal(read(out.tensor(), P).x, read(in.tensor(), P).x);
    }
  }
}

TEST_CASE("add adds each element once") {
  for (Dtype t : {Dtype::f32, Dtype::f64}) {
    Machine m(t);
    for (int64_t n : {1, 17, 50001}) {
      // Integers, so that sums are exact.
      Values a = constant_values(P, {n}, 0), b = a, sum = a;
      for (int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<size_t>(i);
        a.x[k] = static_cast<double>(i);
        b.x[k] = static_cast<double>(3 * i + 1);
        sum.x[k] = static_cast<double>(4 * i + 1);
      }
      const Memory dst = m.memory(a), src = m.memory(b);
      m.backend().add(dst.tensor(), src.tensor());
      check_equal(read(dst.tensor(), P).x, sum.x);
      check_equal(read(src.tensor(), P).x, b.x);
    }
  }
}

TEST_CASE("add of activations rounds each sum once") {
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    for (int64_t n : {1, 17, 50001}) {
      const Memory dst = m.memory(random_values(Role::activation, {n}, "dst"));
      const Memory src = m.memory(random_values(Role::activation, {n}, "src"));
      std::vector<double> sum = read(dst.tensor(), Role::activation).x;
      const std::vector<double> other = read(src.tensor(), Role::activation).x;
      for (size_t i = 0; i < sum.size(); ++i) {
        // Two bf16 or fp32 numbers have an exact sum in fp64.
        sum[i] = rounded(rounded(sum[i] + other[i], t == Dtype::bf16 ? Dtype::f32 : t), t);
      }
      m.backend().add(dst.tensor(), src.tensor());
      check_equal(read(dst.tensor(), Role::activation).x, sum);
    }
  }
}

TEST_CASE("zero clears its tensor and nothing else") {
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    const Memory x = m.memory(constant_values(Role::activation, {70002}, 7));
    m.backend().zero(x.tensor().slice(0, 1, 70000));
    Values expected = constant_values(Role::activation, {70002}, 0);
    expected.x.front() = expected.x.back() = 7;
    check_equal(read(x.tensor(), Role::activation).x, expected.x);
  }
}

TEST_CASE("the squared norm of 1, 2, ..., n is n (n + 1) (2 n + 1) / 6 exactly") {
  for (Dtype t : {Dtype::f32, Dtype::f64}) {
    Machine m(t);
    for (int64_t n : {1, 7, 8, 100, 16384, 16385, 123457}) {
      Values v = constant_values(P, {n}, 0);
      for (int64_t i = 0; i < n; ++i) v.x[static_cast<size_t>(i)] = static_cast<double>(i + 1);
      const double expected = static_cast<double>(n * (n + 1) * (2 * n + 1) / 6);
      CHECK(m.squared_norm(m.memory(v).tensor()) == expected);
    }
  }
}

TEST_CASE("the squared norm of a billion bytes counts its first and last elements once") {
  // Untouched pages take no memory.
  constexpr int64_t n = (int64_t{1} << 28) + 20000;
  Machine m(Dtype::f32);
  Arena arena;
  Tensor x;
  arena.add("x", &x, Dtype::f32, {n});
  arena.commit();
  for (int64_t i : {int64_t{0}, n / 2, (int64_t{1} << 28) - 1, int64_t{1} << 28, n - 1}) {
    x.ptr<float>()[i] = 3;
  }
  CHECK(m.squared_norm(x) == 45);
}

TEST_CASE("a squared norm of numbers past fp32's squares is finite, one with NaN is NaN") {
  Machine m(Dtype::f32);
  CHECK(m.squared_norm(m.memory(constant_values(P, {4}, 0x1p100)).tensor()) == 0x1p202);
  Values v = constant_values(P, {40000}, 1);
  v.x[33333] = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(m.squared_norm(m.memory(v).tensor())));
}

}  // namespace
}  // namespace bamtrain::testing
