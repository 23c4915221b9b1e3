// Cross entropy on the engine, compared with fp64.

#include "kernels/loss.h"

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.h"
#include "core/ignore_index.h"
#include "core/rng.h"
#include "engine/support.h"
#include "kernels/device.cuh"

using namespace bamtrain;
using engine::GlobalArray;
using engine::ScopedOptions;
using kernels::CrossEntropy;

namespace {

constexpr size_t kLossTile = 8192,
                 kKept = 3 * kLossTile;  // logits: the kernel switches its method here

/// Rows of logits and their targets. Rows in memory are `padding` elements longer than necessary,
/// and elements past V are NaN.
struct Problem {
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> targets;
  double scale = 1;
  size_t padding = 0;

  size_t R() const { return logits.size(); }
  size_t V() const { return logits[0].size(); }
  size_t row() const { return (V() + 3) / 4 * 4 + padding; }
};

Problem normal_problem(size_t R, size_t V, double deviation, size_t padding = 0) {
  const Rng rng(3, "logits");
  Problem p;
  p.scale = 1.0 / 64;
  p.padding = padding;
  for (size_t r = 0; r < R; ++r) {
    std::vector<float> row(V);
    for (size_t v = 0; v < V; ++v) row[v] = static_cast<float>(deviation * rng.normal(r * V + v));
    p.logits.push_back(row);
    p.targets.push_back(static_cast<int32_t>(r == 0 ? V - 1 : rng.below(r, V)));
  }
  return p;
}

struct LossResults {
  std::vector<float> losses;
  std::vector<std::vector<double>> dlogits;  // rows including their padding
  bool operator==(const LossResults&) const = default;
};

GlobalArray<float> in_memory(const Problem& p) {
  std::vector<float> all(p.R() * p.row(), NAN);
  for (size_t r = 0; r < p.R(); ++r) {
    for (size_t v = 0; v < p.V(); ++v) all[r * p.row() + v] = p.logits[r][v];
  }
  return GlobalArray<float>(all);
}

double value(float x) { return static_cast<double>(x); }
double value(device::bf16 x) { return static_cast<double>(device::to_float(x)); }

template <class A>
LossResults run(const Problem& p, bool in_place = false, size_t extra_columns = 0) {
  GlobalArray<float> logits = in_memory(p), losses(p.R());
  const GlobalArray<int32_t> targets(p.targets);
  const size_t dlogits_row = in_place ? p.row() : (p.V() + 3) / 4 * 4 + extra_columns;
  GlobalArray<A> dlogits(p.R() * dlogits_row);
  CrossEntropy<A> c;
  c.R = static_cast<int64_t>(p.R());
  c.V = static_cast<int64_t>(p.V());
  c.losses = losses.data();
  c.dlogits = dlogits.data();
  c.dlogits_row = static_cast<int64_t>(dlogits_row);
  c.logits = logits.data();
  c.logits_row = static_cast<int64_t>(p.row());
  c.targets = targets.data();
  c.scale = p.scale;
  A* written = dlogits.data();
  if constexpr (std::is_same_v<A, float>) {
    if (in_place) written = c.dlogits = logits.data();
  }
  REQUIRE(kernels::cross_entropy(c, nullptr).ok());
  LossResults x;
  x.losses = losses.values();
  for (size_t r = 0; r < p.R(); ++r) {
    x.dlogits.emplace_back();
    for (size_t v = 0; v < dlogits_row; ++v) {
      x.dlogits[r].push_back(value(written[r * dlogits_row + v]));
    }
  }
  return x;
}

std::vector<float> losses_alone(const Problem& p) {
  GlobalArray<float> logits = in_memory(p), losses(p.R());
  const GlobalArray<int32_t> targets(p.targets);
  CrossEntropy<device::bf16> c;
  c.R = static_cast<int64_t>(p.R());
  c.V = static_cast<int64_t>(p.V());
  c.losses = losses.data();
  c.logits = logits.data();
  c.logits_row = static_cast<int64_t>(p.row());
  c.targets = targets.data();
  REQUIRE(kernels::cross_entropy(c, nullptr).ok());
  return losses.values();
}

/// Checks the worst errors of a row's loss and gradient, as fractions of the allowed error.
///
/// A loss: 1e-6 max(1, loss), see loss.cu. A probability: 2^-22 and 2^-23 of its exponential, 2^-24
/// |d| of d = z - highest, 1e-6 of the sum, 2^-22 of the factor and the product; then its rounding
/// to A. Exponentials below 2^-126 are zero.
template <class A>
void compare(const Problem& p, const LossResults& found) {
  double worst_loss = 0, worst_gradient = 0;
  for (size_t r = 0; r < p.R(); ++r) {
    const std::vector<float>& z = p.logits[r];
    double highest = -INFINITY, sum = 0;
    for (float x : z) highest = std::max(highest, double{x});
    for (float x : z) sum += std::exp(x - highest);
    const auto target = static_cast<size_t>(p.targets[r]);
    const double loss = std::log(sum) + highest - z[target];
    const double loss_error = std::abs(found.losses[r] - loss) / (1e-6 * std::max(1.0, loss));
    worst_loss = std::isnan(loss_error) ? INFINITY : std::max(worst_loss, loss_error);
    REQUIRE(found.dlogits[r].size() >= z.size());
    for (size_t v = 0; v < found.dlogits[r].size(); ++v) {
      if (v >= z.size()) {
        if (found.dlogits[r][v] != 0) worst_gradient = INFINITY;
        continue;
      }
      const double d = z[v] - highest, probability = std::exp(d) / sum;
      const double truth = p.scale * (probability - (v == target ? 1 : 0));
      const double relative = 0x1p-21 + 0x1p-23 + std::min(-d, 100.0) * 0x1p-24 + 1e-6;
      const double rounding = std::is_same_v<A, float> ? 0x1p-24 : 0x1p-8;
      const double allowed =
          p.scale * (probability * relative + 0x1p-125) + std::abs(truth) * rounding;
      const double error = std::abs(found.dlogits[r][v] - truth) / allowed;
      worst_gradient = std::isnan(error) ? INFINITY : std::max(worst_gradient, error);
    }
  }
  CHECK(worst_loss < 1);
  CHECK(worst_gradient < 1);
}

template <class A>
void compare_sizes() {
  for (size_t V : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{256}, size_t{2050}, kLossTile,
                   kLossTile + 1, kKept - 3, kKept + 1, size_t{50257}}) {
    const Problem p = normal_problem(V < 3000 ? 5 : 1, V, 3, V % 2 == 0 ? 8 : 0);
    INFO("V " << V);
    compare<A>(p, run<A>(p));
    compare<A>(p, run<A>(p, false, 12));
  }
}

}  // namespace

TEST_CASE("cross entropy of any number of logits agrees with fp64, and pads rows with zeros") {
  SECTION("float") { compare_sizes<float>(); }
  SECTION("device::bf16") { compare_sizes<device::bf16>(); }
}

TEST_CASE("a row without a target has no loss and no gradient, whatever its logits") {
  for (const size_t V : {size_t{3}, size_t{50257}}) {
    Problem p = normal_problem(3, V, 3, 8);
    p.targets[1] = kIgnoreIndex;
    p.logits[1].assign(V, NAN);
    INFO("V " << V);
    const LossResults wide = run<float>(p), in_place = run<float>(p, true),
                      half = run<device::bf16>(p);
    for (const LossResults& x : {wide, in_place, half}) {
      CHECK(x.losses[1] == 0);
      CHECK(x.dlogits[1] == std::vector<double>(x.dlogits[1].size(), 0.0));
      CHECK(x.losses[0] > 0);
      CHECK(x.losses[2] > 0);
    }
    CHECK(losses_alone(p) == wide.losses);
  }
}

TEST_CASE("zeros are written up to the end of a row far past its last logit") {
  const Problem p = normal_problem(2, 10, 1);
  compare<float>(p, run<float>(p, false, 2 * kLossTile));
}

TEST_CASE("cross entropy keeps its accuracy where rows are hard") {
  constexpr size_t V = size_t{1} << 17;
  Problem p;
  const auto add_row = [&](auto logit, size_t target) {
    std::vector<float> row(V);
    for (size_t v = 0; v < V; ++v) row[v] = static_cast<float>(logit(v));
    p.logits.push_back(row);
    p.targets.push_back(static_cast<int32_t>(target));
  };
  // The largest error by the bound of loss.cu: equal terms have equal rounding errors, which add
  // up.
  add_row([](size_t v) { return v == 70000 ? 0.3 : -10.9; }, 70000);
  add_row([](size_t) { return 0.7; }, 0);
  // The running maximum changes with every tile, as does that of every thread.
  add_row([](size_t v) { return 1e-4 * static_cast<double>(v); }, V - 1);
  add_row([](size_t v) { return -1e-4 * static_cast<double>(v); }, 5);
  // Far from zero, far apart, and a target whose exp is close to zero.
  add_row([](size_t v) { return 10000 + static_cast<double>(v % 7); }, 3);
  add_row([](size_t v) { return v == 100 ? 3e4 : -3e4; }, 101);
  compare<float>(p, run<float>(p));
}

TEST_CASE("what d log2(e) loses in rounding is put back") {
  // d = -11.25 is exact, and its product has nearly the worst rounding error: 2^x alone gives a
  // loss that is 5e-7 off. The remaining errors, all of one sign: 2^-24 (the engine's 2^x), 2^-23
  // and 4 * 2^-24 of the sum's share 0.63, and 2^-24 of the loss.
  Problem p;
  p.logits.emplace_back(size_t{1} << 17, -11.0f);
  p.logits[0][9] = 0.25f;
  p.targets = {9};
  const double loss = std::log1p((0x1p17 - 1) * std::exp(-11.25));
  CHECK(std::abs(losses_alone(p)[0] - loss) < (7 * 0.63 + 1) * 0x1p-24);
}

TEST_CASE("a logit of minus infinity has probability zero") {
  Problem p = normal_problem(2, 700, 2);
  for (size_t v = 0; v < 600; ++v) p.logits[0][v] = -INFINITY;
  const LossResults found = run<float>(p);
  compare<float>(p, found);
  CHECK(found.dlogits[0][17] == 0);
}

TEST_CASE("NaN and plus infinity make the loss of their row NaN, and of no other") {
  for (const float bad : {NAN, INFINITY}) {
    for (const size_t at : {size_t{0}, kLossTile + 5, 2 * kLossTile}) {
      INFO(bad << " at " << at);
      Problem p = normal_problem(2, 2 * kLossTile + 1, 2);
      const std::vector<float> good = losses_alone(p);
      p.logits[0][at] = bad;
      const std::vector<float> found = losses_alone(p);
      CHECK(std::isnan(found[0]));
      CHECK(found[1] == good[1]);
    }
  }
}

TEST_CASE("gradients in the logits' own memory, and losses alone, have the same bits") {
  for (const size_t V : {size_t{11}, kKept + 4001}) {
    const Problem p = normal_problem(2, V, 3);
    const LossResults apart = run<float>(p);
    CHECK(run<float>(p, true) == apart);
    CHECK(losses_alone(p) == apart.losses);
  }
}

TEST_CASE("cross entropy gives the same bits in every order of threads, warps and blocks") {
  const Problem p = normal_problem(2, kLossTile + 77, 3);
  const LossResults first = run<device::bf16>(p), first_in_place = run<float>(p, true);
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    CHECK(run<device::bf16>(p) == first);
    CHECK(run<float>(p, true) == first_in_place);
  }
}

TEST_CASE("cross entropy refuses what it does not take") {
  GlobalArray<float> f(64);
  const GlobalArray<int32_t> targets(std::vector<int32_t>{0, 0});
  CrossEntropy<float> good;
  good.R = 2;
  good.V = 10;
  good.losses = f.data() + 48;
  good.dlogits = f.data();
  good.logits = f.data() + 24;
  good.dlogits_row = good.logits_row = 12;
  good.targets = targets.data();
  const auto refused = [&](auto change) {
    CrossEntropy<float> c = good;
    change(c);
    return kernels::cross_entropy(c, nullptr).code == device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& c) { c.R = 0; }));
  CHECK(refused([](auto& c) { c.V = 0; }));
  CHECK(refused([](auto& c) { c.V = int64_t{1} << 31; }));
  CHECK(refused([](auto& c) { c.logits_row = 11; }));
  CHECK(refused([](auto& c) { c.logits_row = 8; }));
  CHECK(refused([](auto& c) { c.logits += 1; }));
  CHECK(refused([](auto& c) { c.logits = nullptr; }));
  CHECK(refused([](auto& c) { c.dlogits_row = 14; }));
  CHECK(refused([](auto& c) { c.dlogits_row = 8; }));
  CHECK(refused([](auto& c) { c.dlogits += 2; }));
  CHECK(refused([](auto& c) { c.losses = nullptr; }));
  CHECK(refused([](auto& c) { c.targets = nullptr; }));
  CHECK(refused([&](auto& c) {
    c.dlogits = f.data() + 24;
    c.dlogits_row = 16;
  }));
  CrossEntropy<device::bf16> narrow;
  narrow.R = 2;
  narrow.V = 10;
  narrow.losses = good.losses;
  narrow.logits = good.logits;
  narrow.logits_row = narrow.dlogits_row = 12;
  narrow.targets = good.targets;
  narrow.dlogits = reinterpret_cast<device::bf16*>(f.data() + 24);
  CHECK(kernels::cross_entropy(narrow, nullptr).code == device::LaunchStatus::kRefused);
}
