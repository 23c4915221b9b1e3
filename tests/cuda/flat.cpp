// Operations over flat arrays on CUDA, including the optimizer, compared with the fp64 reference.
// They cover whole tiles and a remainder, from the start of an allocation and from one element past
// it.

#include <cmath>

#include "catch.h"
#include "cuda/device.h"
#include "ops/step_factors.h"

namespace bamtrain::testing {
namespace {

constexpr Role A = Role::activation, P = Role::parameter, W = Role::wide;
constexpr int64_t kN = 3 * 4096 + 1029;            // not a multiple of a thread's share
constexpr int64_t kSizes[] = {1, 1000, 4096, kN};  // 1000: 3 or 4 per thread

void compare_flat(const Operation& op, double tolerance) {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    INFO(name_of(t));
    Machine machine(t, cuda_device());
    compare_with_reference(op, t, tolerance, {&machine});
  }
}

/// dst += src.
Operation addition(Role role, int64_t n) {
  Operation op;
  op.inputs = {{"dst", random_values(role, {n}, "dst")}, {"src", random_values(role, {n}, "src")}};
  op.forward = [role](Machine& m, const Arrays& in) {
    const Memory dst = m.memory(in.at("dst")), src = m.memory(in.at("src"));
    m.backend().add(dst.tensor(), src.tensor());
    return Arrays{{"dst", read(dst.tensor(), role)}};
  };
  return op;
}

TEST_CASE("sums of arrays on CUDA agree with the reference") {
  for (const int64_t n : kSizes) {
    INFO("n " << n);
    compare_flat(addition(A, n), kF32);
    compare_flat(addition(P, n), kF32);
    compare_flat(addition(W, n), 0);
  }
}

TEST_CASE("arrays rounded on CUDA are the host's, to the bit") {
  for (const int64_t n : kSizes) {
    const Values x = random_values(P, {n}, "x");
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      INFO("n " << n << " to " << name_of(t));
      Machine m(t, cuda_device());
      const Memory src = m.memory(x), dst = m.unwritten(A, {n});
      m.backend().convert(dst.tensor(), src.tensor());
      std::vector<double> expected;
      for (double v : x.x) expected.push_back(rounded(rounded(v, Dtype::f32), t));
      check_equal(read(dst.tensor(), A).x, expected);
    }
  }
}

TEST_CASE("sums and squares on CUDA agree with the reference") {
  for (int64_t n : {int64_t{1}, int64_t{512}, kN, 600 * int64_t{4096} + 7}) {
    INFO("n " << n);
    Operation op;
    op.inputs = {{"x", random_values(P, {n}, "x")}};
    op.forward = [n](Machine& m, const Arrays& in) {
      const Memory x = m.memory(in.at("x")), total = m.memory(constant_values(W, {1}, 3)),
                   squares = m.unwritten(W, {squares_blocks(n)});
      m.backend().sum(total.tensor(), x.tensor());
      m.backend().squares(squares.tensor(), x.tensor());
      return Arrays{{"total", read(total.tensor(), W)}, {"squares", read(squares.tensor(), W)}};
    };
    // n terms of size 1 in fp64, added in a different order.
    op.cancelling = {{"total", static_cast<double>(n)}};
    compare_flat(op, 1e-12);
  }
}

/// An optimizer step of n parameters at offset `offset` of their own memory, with their rounded
/// copy. Elements outside of the n are 7. Factor 1 is left out.
Operation step(const OptimizerStep& s, int64_t n, int64_t offset, double factor) {
  const auto moved = [offset](Values v) {
    v.x.insert(v.x.begin(), static_cast<size_t>(offset), 7);
    v.x.push_back(7);
    v.shape[0] += offset + 1;
    return v;
  };
  Values v = random_values(P, {n}, "v");
  for (double& x : v.x) x *= x;
  Operation op;
  op.inputs = {{"w", moved(random_values(P, {n}, "w"))},
               {"m", moved(random_values(P, {n}, "m"))},
               {"v", moved(v)},
               {"g", moved(random_values(P, {n}, "g"))},
               {"factor", constant_values(W, {1}, factor)}};
  op.forward = [=](Machine& machine, const Arrays& in) {
    std::map<std::string, Memory> memory;
    for (const auto& [name, values] : in) memory.emplace(name, machine.memory(values));
    const auto part = [&](const char* name) {
      return memory.at(name).tensor().slice(0, offset, n);
    };
    const bool half = machine.dtype_of(A) == Dtype::bf16;
    const Memory copy = machine.memory(moved(constant_values(A, {n}, 0)));
    machine.backend().optimizer_step(part("w"), part("m"), part("v"),
                                     half ? copy.tensor().slice(0, offset, n) : Tensor(), part("g"),
                                     factor == 1 ? Tensor() : memory.at("factor").tensor(),
                                     step_factors(machine, s).tensor(), s.rule);
    Arrays out;
    for (const char* name : {"w", "m", "v"}) out[name] = read(memory.at(name).tensor(), P);
    out["copy"] = half ? read(copy.tensor(), A) : out.at("w");
    out["copy"].role = A;
    return out;
  };
  return op;
}

TEST_CASE("steps of the optimizers on CUDA agree with the reference") {
  for (OptimizerKind kind : {OptimizerKind::radam, OptimizerKind::adamw}) {
    for (int64_t count : {1, 60}) {
      OptimizerStep s;
      s.kind = kind;
      s.step = count;
      s.lr = 1e-2;
      s.rule.beta1 = 0.9;
      s.rule.beta2 = 0.95;
      s.rule.eps = 1e-8;
      s.weight_decay = 0.1;
      s.rule.minimum = count == 60 ? -1 : -INFINITY;
      s.rule.maximum = count == 60 ? 1.5 : INFINITY;
      for (int64_t n : {int64_t{1}, int64_t{1024}, kN}) {
        for (int64_t offset : {0, 1}) {
          INFO((kind == OptimizerKind::radam ? "radam" : "adamw")
               << ", step " << count << ", n " << n << ", offset " << offset);
          // About ten roundings of numbers of size 1. The smallest of n roots of v amplifies a
          // momentum and its rounding error.
          compare_flat(step(s, n, offset, count == 60 ? 1 : 0.5), 16 * kF32);
          // A NaN factor leaves all values unchanged.
          Machine machine(Dtype::f32, cuda_device());
          const Operation none = step(s, n, offset, std::nan(""));
          const Arrays after = none.forward(machine, none.inputs);
          for (const char* name : {"w", "m", "v"}) {
            std::vector<double> before = none.inputs.at(name).x;
            for (double& x : before) x = rounded(x, Dtype::f32);
            check_equal(after.at(name).x, before);
          }
        }
      }
    }
  }
}

TEST_CASE("the clipping factor on CUDA is the host's") {
  Machine m(Dtype::f32, cuda_device());
  const Memory factor = m.memory(constant_values(W, {1}, 1)), squares = m.unwritten(W, {1});
  const Memory factor_of_gradients = m.unwritten(W, {1});
  const auto next = [&](double squared_norm, double clip, double scale = 1) {
    fill(squares.tensor(), constant_values(W, {1}, squared_norm));
    fill(factor_of_gradients.tensor(), constant_values(W, {1}, scale));
    m.backend().clip_factor(factor.tensor(), squares.tensor(), clip, factor_of_gradients.tensor());
    return read(factor.tensor(), W).x.at(0);
  };
  CHECK(next(64, 2) == 0.25);
  CHECK(next(4, 2) == 1);
  CHECK(next(64, 0) == 1);
  CHECK(next(64, 2, 0.5) == 0.25);
  CHECK(next(64, 2, 0.125) == 0.125);
  CHECK(std::isnan(next(INFINITY, 2)));
  CHECK(std::isnan(next(1, 2)));  // no step after one that failed
}

TEST_CASE("the place of the largest element on CUDA is the host's") {
  Machine host(Dtype::f32), device(Dtype::f32, cuda_device());
  for (const int64_t V : {1, 33, 300, 3000}) {
    Values x = random_values(P, {5, V}, "argmax", 3);
    for (double& y : x.x) y = std::round(4 * y);  // many are equal
    x.x[0] = std::nan("");
    std::vector<double> places[2];
    for (Machine* m : {&host, &device}) {
      const Memory of = m->memory(x), out = m->unwritten(Role::index, {5});
      m->backend().argmax(out.tensor(), of.tensor());
      places[m == &device] = read(out.tensor(), Role::index).x;
    }
    INFO("V " << V);
    CHECK(places[0] == places[1]);
  }
}

}  // namespace
}  // namespace bamtrain::testing
