// RAdam and AdamW, compared with ten steps computed by an independent script (scripts/golden).

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "checkpoint/safetensors.h"
#include "compare.h"
#include "step_factors.h"

namespace bamtrain::testing {
namespace {

struct Golden {
  SafetensorsFile file;

  Golden()
      : file(SafetensorsFile::open([] {
          const char* root = std::getenv("BAMTRAIN_SOURCE");
          return std::string(root ? root : ".") + "/tests/golden/optimizers.safetensors";
        }())) {}

  std::vector<double> operator[](const std::string& name) const {
    const SafetensorsFile::Entry* entry = file.find(name);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->dtype == Dtype::f64);
    std::vector<double> x(static_cast<size_t>(entry->bytes) / sizeof(double));
    file.read(*entry, x.data());
    return x;
  }
};

/// A parameter of n elements with its gradient and optimizer state on a machine.
struct Trained {
  Machine machine;
  Memory weights, m, v, gradients;

  Trained(Dtype t, const std::vector<double>& initial)
      : machine(t),
        weights(machine.memory(values(initial))),
        m(machine.zeros(Role::parameter, {static_cast<int64_t>(initial.size())})),
        v(machine.zeros(Role::parameter, {static_cast<int64_t>(initial.size())})),
        gradients(machine.zeros(Role::parameter, {static_cast<int64_t>(initial.size())})) {}

  static Values values(const std::vector<double>& x) {
    return {Role::parameter, {static_cast<int64_t>(x.size())}, x};
  }
  void step(const OptimizerStep& s, const std::vector<double>& gradient, Tensor factor = {}) {
    fill(gradients.tensor(), values(gradient));
    machine.backend().optimizer_step(weights.tensor(), m.tensor(), v.tensor(), {},
                                     gradients.tensor(), factor, step_factors(machine, s).tensor(),
                                     s.rule);
  }
  std::vector<double> read_weights() const { return read(weights.tensor(), Role::parameter).x; }
};

struct Tolerance {
  double relative, absolute;
  bool operator()(double found, double truth) const {
    return std::abs(found - truth) <= relative * std::abs(truth) + absolute;
  }
};

int64_t count_wrong(const std::vector<double>& found, const double* truth, const Tolerance& near) {
  int64_t wrong = 0;
  for (size_t i = 0; i < found.size(); ++i) wrong += !near(found[i], truth[i]);
  return wrong;
}

TEST_CASE("ten steps of RAdam and of AdamW agree with the golden values") {
  const Golden golden;
  const auto config = nlohmann::json::parse(golden.file.metadata().at("config"));
  const std::vector<double> initial = golden["initial"], gradients = golden["gradients"];
  const size_t n = initial.size(), steps = gradients.size() / n;
  REQUIRE(steps == 10);
  for (OptimizerKind kind : {OptimizerKind::radam, OptimizerKind::adamw}) {
    const std::string name = kind == OptimizerKind::radam ? "radam" : "adamw";
    const std::vector<double> weights = golden[name + ".weights"];
    for (Dtype t : {Dtype::f64, Dtype::f32}) {
      // In fp32, a step rounds the change about ten times and the weight twice. The change is at
      // most lr times the momentum (RAdam's first steps are not divided by sqrt(v)).
      const bool exact = t == Dtype::f64;
      const double lr = config["lr"];
      Trained p(t, initial);
      for (size_t k = 0; k < steps; ++k) {
        INFO(name << ", step " << k + 1 << " in " << name_of(t));
        OptimizerStep s;
        s.kind = kind;
        s.step = static_cast<int64_t>(k + 1);
        s.lr = lr;
        s.rule.beta1 = config["betas"][0];
        s.rule.beta2 = config["betas"][1];
        s.rule.eps = config["eps"];
        s.weight_decay = config["weight_decay"];
        p.step(s, {gradients.begin() + static_cast<int64_t>(k * n),
                   gradients.begin() + static_cast<int64_t>((k + 1) * n)});
        double momentum = 1;
        for (size_t i = 0; i < n; ++i)
          momentum = std::max(momentum, std::abs(gradients[k * n + i]));
        const double roundings = static_cast<double>(k + 1);
        const Tolerance near =
            exact ? Tolerance{1e-12, 1e-15}
                  : Tolerance{2 * roundings * kF32, 10 * roundings * kF32 * lr * momentum};
        CHECK(count_wrong(p.read_weights(), weights.data() + k * n, near) == 0);
      }
      const Tolerance near = exact ? Tolerance{1e-12, 0} : Tolerance{40 * kF32, 1e-30};
      const std::vector<double> m = golden[name + ".m"], v = golden[name + ".v"];
      if (exact) {
        CHECK(count_wrong(read(p.m.tensor(), Role::parameter).x, m.data(), near) == 0);
      } else {
        // m is a sum of gradients of both signs.
        check_close("m", read(p.m.tensor(), Role::parameter), Trained::values(m), 40 * kF32);
      }
      CHECK(count_wrong(read(p.v.tensor(), Role::parameter).x, v.data(), near) == 0);
    }
  }
}

TEST_CASE("the clipping factor scales the gradient before the moments see it") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    for (OptimizerKind kind : {OptimizerKind::radam, OptimizerKind::adamw}) {
      OptimizerStep s;
      s.kind = kind;
      s.step = 9;
      s.lr = 0.1;
      s.rule.beta1 = 0.9;
      s.rule.beta2 = 0.95;
      s.rule.eps = 1e-8;
      Trained scaled(t, {1, -2, 3}), clipped(t, {1, -2, 3});
      scaled.step(s, {0.25, -0.5, 4});
      double quarter = 0.25;
      clipped.step(s, {1, -2, 16}, Tensor(&quarter, Dtype::f64, {1}));
      CHECK(scaled.read_weights() == clipped.read_weights());
    }
  }
}

TEST_CASE("the clipping factor brings a larger norm to the limit and leaves a smaller one") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    Machine machine(t);
    double before = 1, squares = 0;
    const auto factor = [&](double squared_norm, double clip, double scale = 1) {
      squares = squared_norm;
      machine.backend().clip_factor(Tensor(&before, Dtype::f64, {1}),
                                    Tensor(&squares, Dtype::f64, {1}), clip,
                                    Tensor(&scale, Dtype::f64, {1}));
      return before;
    };
    CHECK(factor(64, 2) == 0.25);
    CHECK(factor(4, 2) == 1);
    CHECK(factor(1, 2) == 1);
    CHECK(factor(64, 0) == 1);
    CHECK(factor(0, 2) == 1);
    // The gradients have yet to be multiplied by this factor.
    CHECK(factor(64, 2, 0.5) == 0.25);
    CHECK(factor(64, 2, 0.125) == 0.125);
    CHECK(factor(64, 0, 0.5) == 0.5);
    CHECK(std::isnan(factor(INFINITY, 2)));
    // No step after one that failed.
    CHECK(std::isnan(factor(1, 2)));
    before = 1;
    CHECK(std::isnan(factor(NAN, 0)));
  }
}

TEST_CASE("a step whose factor is NaN writes nothing") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    double none = NAN;
    OptimizerStep s;
    s.lr = 0.5;
    s.weight_decay = 0.25;
    Trained p(t, {8, -16, 0});
    p.step(s, {1, NAN, 3}, Tensor(&none, Dtype::f64, {1}));
    CHECK(p.read_weights() == std::vector<double>{8, -16, 0});
    CHECK(read(p.m.tensor(), Role::parameter).x == std::vector<double>(3, 0.0));
    CHECK(read(p.v.tensor(), Role::parameter).x == std::vector<double>(3, 0.0));
  }
}

TEST_CASE("without a gradient only the decay moves a weight") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    for (OptimizerKind kind : {OptimizerKind::radam, OptimizerKind::adamw}) {
      OptimizerStep s;
      s.kind = kind;
      s.step = 100;
      s.lr = 0.5;
      s.rule.beta1 = 0.9;
      s.rule.beta2 = 0.95;
      s.rule.eps = 1e-8;
      s.weight_decay = 0.25;
      Trained p(t, {8, -16, 0});
      p.step(s, {0, 0, 0});
      CHECK(p.read_weights() == std::vector<double>{7, -14, 0});
    }
  }
}

TEST_CASE("the rounded copy is the new weights, rounded, and nothing else") {
  // Longer than a thread's share, and not a multiple of a vector.
  constexpr int64_t n = 40003;
  Machine machine(Dtype::bf16);
  const Memory w = machine.memory(random_values(Role::parameter, {n}, "w"));
  const Memory g = machine.memory(random_values(Role::parameter, {n}, "g"));
  const Memory m = machine.zeros(Role::parameter, {n}), v = machine.zeros(Role::parameter, {n});
  const Memory rounded = machine.memory(constant_values(Role::activation, {n + 2}, 7));
  const Memory expected = machine.unwritten(Role::activation, {n});
  OptimizerStep s;
  s.lr = 0.01;
  s.rule.beta1 = 0.9;
  s.rule.beta2 = 0.95;
  s.rule.eps = 1e-8;
  machine.backend().optimizer_step(w.tensor(), m.tensor(), v.tensor(),
                                   rounded.tensor().slice(0, 1, n), g.tensor(), {},
                                   step_factors(machine, s).tensor(), s.rule);
  machine.backend().convert(expected.tensor(), w.tensor());
  std::vector<double> all = read(expected.tensor(), Role::activation).x;
  all.insert(all.begin(), 7);
  all.push_back(7);
  check_equal(read(rounded.tensor(), Role::activation).x, all);
}

TEST_CASE("a weight that a step takes past its limits stays on them, its moments do not") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    OptimizerStep s;
    s.lr = 0.125;  // AdamW's first step
    s.rule.beta1 = 0.5;
    s.rule.beta2 = 0.5;
    s.rule.minimum = -0.25;
    s.rule.maximum = 0.75;
    // Weights at both limits, and enough for all lanes of a vector.
    std::vector<double> before, gradients, after, m;
    for (int i = 0; i < 40; ++i) {
      const double w = i % 4 == 0 ? 0 : i % 4 == 1 ? 0.5 : i % 4 == 2 ? 0.7 : -0.2;
      const double g = i % 4 == 0 || i % 4 == 3 ? 2 : -2;
      before.push_back(w);
      gradients.push_back(g);
      after.push_back(i % 4 == 0 ? -0.125 : i % 4 == 1 ? 0.625 : i % 4 == 2 ? 0.75 : -0.25);
      m.push_back(g / 2);
    }
    Trained p(t, before);
    p.step(s, gradients);
    const std::vector<double> w = p.read_weights();
    for (size_t i = 0; i < w.size(); ++i) {
      INFO("weight " << i << " in " << name_of(t));
      CHECK(w[i] == (i % 4 < 2 ? Approx(after[i]).epsilon(1e-6) : Approx(after[i]).epsilon(0)));
    }
    check_equal(read(p.m.tensor(), Role::parameter).x, m);
    p.step(s, std::vector<double>(before.size(), std::nan("")));
    for (double x : p.read_weights()) CHECK(std::isnan(x));
  }
}

TEST_CASE("AdamW's first step is lr times the gradient's sign") {
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    OptimizerStep s;
    s.lr = 0.125;
    s.rule.beta1 = 0.9;
    s.rule.beta2 = 0.999;
    Trained p(t, {1, 1, 1});
    p.step(s, {3, -0.001, 1e5});
    const std::vector<double> w = p.read_weights();
    CHECK(w[0] == Approx(0.875).epsilon(1e-6));
    CHECK(w[1] == Approx(1.125).epsilon(1e-6));
    CHECK(w[2] == Approx(0.875).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace bamtrain::testing
