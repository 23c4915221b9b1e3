// The optimizer's pass on the engine, compared with the CPU backend and fp64.

#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "core/dtype.h"
#include "core/rng.h"
#include "engine/support.h"
#include "kernels/device.cuh"
#include "ops/cpu/cpu.h"
#include "ops/cuda/optimizer_scalars.h"
#include "ops/optimizer_math.h"

using namespace bamtrain;
using engine::GlobalArray;
using kernels::OptimizerScalars;

namespace {

constexpr size_t kBlock = 1024;  // elements per block
constexpr double kFactor = 0.37;

OptimizerStep step_of(OptimizerKind kind, int64_t step) {
  OptimizerStep s;
  s.kind = kind;
  s.step = step;
  s.lr = 3e-2;
  s.rule.beta1 = 0.9;
  s.rule.beta2 = 0.95;
  s.rule.eps = 1e-8;
  s.weight_decay = 2;
  s.rule.minimum = -1.5;  // some weights of state_of() are below it
  s.rule.maximum = 1.25;
  return s;
}

std::vector<double> factors_of(const OptimizerStep& step) {
  std::vector<double> factors(kOptimizerFactors);
  write_factors(optimizer_factors(step), factors.data());
  return factors;
}

struct State {
  std::vector<float> w, m, v, g;
  bool operator==(const State&) const = default;
};

State state_of(size_t n) {
  const Rng w(8, "w"), m(8, "m"), v(8, "v"), g(8, "g");
  State s;
  for (size_t i = 0; i < n; ++i) {
    s.w.push_back(static_cast<float>(w.normal(i)));
    s.m.push_back(static_cast<float>(0.1 * m.normal(i)));
    s.v.push_back(static_cast<float>(std::pow(v.normal(i), 4) * 0.01));
    s.g.push_back(i % 50 == 7 ? 0.0f : static_cast<float>(g.normal(i)));
  }
  return s;
}

struct Result {
  State state;
  std::vector<uint16_t> copy;
  bool operator==(const Result&) const = default;
};

/// Runs one step. Each array begins `offset` elements after an address aligned to 16 bytes, the
/// copy `copy_offset` more. Checks that elements outside the range do not change.
Result on_engine(const State& s, const OptimizerStep& step, size_t offset, bool copy,
                 size_t copy_offset = 0, double factor = kFactor) {
  constexpr float kMark = 1234.5f;
  const size_t n = s.w.size(), end = offset + n;
  const auto placed = [&](const std::vector<float>& x) {
    std::vector<float> all(end + 3, kMark);
    std::copy(x.begin(), x.end(), all.begin() + static_cast<ptrdiff_t>(offset));
    return all;
  };
  GlobalArray<float> w(placed(s.w)), m(placed(s.m)), v(placed(s.v)), g(placed(s.g));
  constexpr uint16_t kNarrowMark = 0x1234;
  GlobalArray<device::bf16> narrow(
      std::vector<device::bf16>(end + copy_offset + 3, device::bf16{kNarrowMark}));
  GlobalArray<double> of_clipping(std::vector<double>{factor}), of_step(factors_of(step));
  REQUIRE(kernels::optimizer_step(w.data() + offset, m.data() + offset, v.data() + offset,
                                  copy ? narrow.data() + offset + copy_offset : nullptr,
                                  g.data() + offset, of_clipping.data(), static_cast<int64_t>(n),
                                  of_step.data(), cuda::optimizer_scalars(step.rule), nullptr)
              .ok());
  Result r;
  const auto taken = [&](const GlobalArray<float>& x) {
    for (size_t i = 0; i < offset; ++i) CHECK(x[i] == kMark);
    for (size_t i = end; i < end + 3; ++i) CHECK(x[i] == kMark);
    return std::vector<float>(x.data() + offset, x.data() + end);
  };
  r.state = {taken(w), taken(m), taken(v), taken(g)};
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (copy && i >= offset + copy_offset && i < end + copy_offset) {
      r.copy.push_back(narrow[i].bits);
    } else {
      CHECK(narrow[i].bits == kNarrowMark);
    }
  }
  return r;
}

State on_cpu(State s, const OptimizerStep& step) {
  const auto n = static_cast<int64_t>(s.w.size());
  const auto tensor = [&](std::vector<float>& x) { return Tensor(x.data(), Dtype::f32, {n}); };
  double factor = kFactor;
  std::vector<double> of_step = factors_of(step);
  make_cpu_backend()->optimizer_step(
      tensor(s.w), tensor(s.m), tensor(s.v), {}, tensor(s.g), Tensor(&factor, Dtype::f64, {1}),
      Tensor(of_step.data(), Dtype::f64, {kOptimizerFactors}), step.rule);
  return s;
}

/// The step's largest error in w, relative to what fp32 allows.
double worst_error(const State& before, const State& after, const OptimizerStep& step) {
  const OptimizerFactors f = optimizer_factors(step);
  double worst = 0;
  for (size_t i = 0; i < before.w.size(); ++i) {
    const double g = before.g[i] * kFactor;
    const double m = step.rule.beta1 * before.m[i] + (1 - step.rule.beta1) * g;
    const double v = step.rule.beta2 * before.v[i] + (1 - step.rule.beta2) * g * g;
    const double change =
        f.step_size * (f.adaptive ? m / (std::sqrt(v) * f.v_scale + step.rule.eps) : m);
    const double w = std::clamp(before.w[i] - f.decay * before.w[i] - change, step.rule.minimum,
                                step.rule.maximum);
    // Two roundings of values like w, and about eight of the step. In m, they are relative to the
    // larger term.
    const double terms = std::abs(before.m[i]) + std::abs(g);
    const double scale = terms == 0 || m == 0 ? 1 : std::max(1.0, terms / std::abs(m));
    const double allowed =
        2 * 0x1p-24 * std::abs(before.w[i]) + 8 * 0x1p-24 * std::abs(change) * scale + 1e-12;
    const double error = std::abs(after.w[i] - w) / allowed;
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

}  // namespace

TEST_CASE("the optimizer's pass has the CPU backend's bits and follows fp64") {
  const State before = state_of(2 * kBlock + 77);
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::radam}) {
    for (const int64_t t : {int64_t{1}, int64_t{4}, int64_t{5}, int64_t{9}, int64_t{1000}}) {
      INFO("kind " << static_cast<int>(kind) << " step " << t);
      const OptimizerStep step = step_of(kind, t);
      const State after = on_engine(before, step, 0, true).state;
      CHECK(after == on_cpu(before, step));
      CHECK(worst_error(before, after, step) < 1);
      CHECK(std::count(after.w.begin(), after.w.end(), -1.5f) > 50);
      CHECK(std::count(after.w.begin(), after.w.end(), 1.25f) > 50);
    }
  }
}

TEST_CASE("the first steps of RAdam are not adaptive, later ones are") {
  // beta2 = 0.95: rho passes 5 between steps 5 and 6 (Liu et al. 2020, equation 5).
  CHECK(factors_of(step_of(OptimizerKind::radam, 5))[3] == 0);
  CHECK(factors_of(step_of(OptimizerKind::radam, 6))[3] == 1);
}

TEST_CASE("any size and any alignment give the same bits, and touch nothing beside the range") {
  const OptimizerStep step = step_of(OptimizerKind::adamw, 3);
  for (const size_t n :
       {size_t{1}, size_t{3}, size_t{4}, size_t{257}, kBlock, kBlock + 1, 3 * kBlock - 2}) {
    INFO(n);
    const State before = state_of(n);
    const Result aligned = on_engine(before, step, 0, true);
    CHECK(aligned.state == on_cpu(before, step));
    CHECK(on_engine(before, step, 1, true) == aligned);
    CHECK(on_engine(before, step, 2, true) == aligned);
    CHECK(on_engine(before, step, 0, true, 1) == aligned);
    CHECK(on_engine(before, step, 0, true, 4) == aligned);
    CHECK(on_engine(before, step, 0, false).state == aligned.state);
    CHECK(on_engine(before, step, 3, false).state == aligned.state);
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += aligned.copy[i] != bf16(aligned.state.w[i]).bits;
    CHECK(wrong == 0);
  }
}

TEST_CASE("the clipping factor follows the norm, and stays NaN once it is") {
  GlobalArray<double> factor(std::vector<double>{1}), squares(std::vector<double>{0});
  GlobalArray<double> of_gradients(std::vector<double>{1});
  const auto next = [&](double squared_norm, double clip, double scale = 1) {
    squares[0] = squared_norm;
    of_gradients[0] = scale;
    REQUIRE(kernels::clip_factor(factor.data(), squares.data(), clip, of_gradients.data(), nullptr)
                .ok());
    return factor[0];
  };
  CHECK(next(64, 2) == 0.25);
  CHECK(next(3, 2) == 1);
  CHECK(next(64, 0) == 1);
  CHECK(next(10, 1) == 1 / std::sqrt(10.0));
  CHECK(next(64, 2, 0.5) == 0.25);  // norm 8, halved to 4, clipped to 2
  CHECK(next(64, 2, 0.125) == 0.125);
  CHECK(next(64, 0, 0.5) == 0.5);
  CHECK(std::isnan(next(INFINITY, 2)));
  CHECK(std::isnan(next(1, 2)));
  double *const f = factor.data(), *const n = squares.data(), *const k = of_gradients.data();
  for (const auto& status : {kernels::clip_factor(nullptr, n, 1, k, nullptr),
                             kernels::clip_factor(f, nullptr, 1, k, nullptr),
                             kernels::clip_factor(f, n, 1, nullptr, nullptr)}) {
    CHECK(status.code == device::LaunchStatus::kRefused);
  }
}

TEST_CASE("a step whose factor is NaN writes nothing, not even the copy") {
  const State before = state_of(kBlock + 7);
  const Result r = on_engine(before, step_of(OptimizerKind::adamw, 3), 0, true, 0, NAN);
  CHECK(r.state == before);
  CHECK(std::all_of(r.copy.begin(), r.copy.end(), [](uint16_t x) { return x == 0x1234; }));
}

TEST_CASE("a gradient that is not finite reaches its own weight alone") {
  State before = state_of(20);
  before.g[6] = NAN;
  const State after = on_engine(before, step_of(OptimizerKind::adamw, 3), 0, false).state;
  for (size_t i = 0; i < 20; ++i) CHECK(std::isnan(after.w[i]) == (i == 6));
}

TEST_CASE("the optimizer's pass has the same bits in every order of threads, warps and blocks") {
  const State before = state_of(kBlock + 9);
  const OptimizerStep step = step_of(OptimizerKind::radam, 12);
  const Result first = on_engine(before, step, 0, true);
  for (const engine::Options& o : engine::schedules()) {
    const engine::ScopedOptions with(o);
    CHECK(on_engine(before, step, 0, true) == first);
  }
}

TEST_CASE("the optimizer's pass refuses an empty range and null arrays") {
  GlobalArray<float> f(16);
  float* const x = f.data();
  const OptimizerStep step = step_of(OptimizerKind::adamw, 1);
  const GlobalArray<double> factors(factors_of(step));
  const OptimizerScalars s = cuda::optimizer_scalars(step.rule);
  const auto refused = [&](float* w, float* m, float* v, const float* g, int64_t n,
                           bool with_factors = true) {
    return kernels::optimizer_step(w, m, v, nullptr, g, nullptr, n,
                                   with_factors ? factors.data() : nullptr, s, nullptr)
               .code == device::LaunchStatus::kRefused;
  };
  CHECK(refused(x, x + 4, x + 8, x + 12, 0));
  CHECK(refused(x, x + 4, x + 8, x + 12, -3));
  CHECK(refused(nullptr, x + 4, x + 8, x + 12, 4));
  CHECK(refused(x, nullptr, x + 8, x + 12, 4));
  CHECK(refused(x, x + 4, nullptr, x + 12, 4));
  CHECK(refused(x, x + 4, x + 8, nullptr, 4));
  CHECK(refused(x, x + 4, x + 8, x + 12, 4, false));
}
