// The check backend: silent if two backends agree, precise if they do not.

#include "ops/check/check.h"

#include <algorithm>

#include "attention_case.h"
#include "cases.h"
#include "catch.h"
#include "ops/check/call.h"
#include "ops/reference/reference.h"
#include "step_factors.h"

namespace bamtrain::testing {
namespace {

std::unique_ptr<Backend> checked(double limit) {
  return make_check_backend(make_cpu_backend(), make_reference_backend(), {limit, limit});
}

Machine checked_machine(double limit) { return {Dtype::f32, {checked(limit), &heap_memory()}}; }

AttentionCase attention_form() {
  AttentionCase c;
  c.B = 1;
  c.T = 19;
  c.table = TableForm::falling;
  c.scale = ScaleForm::both;
  return c;
}

AttentionCase entropy_form() {
  AttentionCase c = attention_form();
  c.scale = ScaleForm::none;
  return c;
}

Operation statistics_alone(const AttentionCase& c) {
  Operation op = attention_statistics(c);
  Machine reference(Dtype::f64);
  op.inputs["level"] = attention(c).forward(reference, op.inputs).at("lse");
  return op;
}

struct Named {
  const char* forward;
  const char* backward;  // "" if one call does both, or there is no backward call
  Operation op;
};

std::vector<Named> operations() {
  return {{"linear_forward", "linear_backward_input", linear({9, 7, 5, true})},
          {"norm_forward", "norm_backward", norm({NormKind::layernorm, 9, 24, true, true})},
          {"activation_forward", "activation_backward", activation(MlpKind::swiglu, 9, 10)},
          {"rotate", "rotate", rotate({2, 7, 2, 6})},
          {"embedding_forward", "embedding_backward", embedding({30, 5, 40, 6, true, 2})},
          {"cross_entropy", "", cross_entropy({5, 30, 0, false})},
          {"gated_rows_forward", "gated_rows_backward", adaptive_scale({2, 9, 3, true})},
          {"attention_entropy", "", attention_entropy(entropy_form())},
          {"attention_statistics", "", statistics_alone(attention_form())},
          {"attention_forward", "attention_backward", attention(attention_form())}};
}

TEST_CASE("backends that agree pass, and the results are those of the tested one") {
  for (const Named& n : operations()) {
    INFO(n.forward);
    // Above fp32's errors, which the tests of each operation derive, and below any mistake.
    Machine machine = checked_machine(1e-4), cpu(Dtype::f32);
    check_same(run(n.op, machine, 0.5), run(n.op, cpu, 0.5));
  }
}

TEST_CASE("a support may have a key more or less, and no other number") {
  Machine plain(Dtype::f32), reference(Dtype::f64);
  const CheckLimits limits;
  for (double difference : {1.0, 2.0}) {
    CheckedCall c(plain.backend(), reference.backend(), limits, "counting");
    const Memory nonzero_keys = plain.zeros(Role::parameter, {3});
    const Tensor trusted = c.mirror(TensorUse::counted, "support", nonzero_keys.tensor());
    const auto count = [&](Backend&, bool own) {
      if (own) nonzero_keys.tensor().ptr<float>()[1] = static_cast<float>(difference);
      if (!own) std::fill_n(trusted.ptr<double>(), 3, 0.0);
    };
    if (difference == 1) CHECK_NOTHROW(c.run(count));
    if (difference == 2) CHECK_THROWS_AS(c.run(count), Error);
  }
}

TEST_CASE("rows whose keys all have the bound for their bias pass") {
  AttentionCase c = attention_form();
  c.table = TableForm::self;
  c.scale = ScaleForm::content;
  c.window = 1;
  Operation alone = attention(c);  // all rows, and -1e4 in the last head
  c.window = 0;
  Operation first = attention(c);  // the first row of every head, like bam with theta_beta = -0.8
  Values& table = first.inputs["table"];
  for (int64_t e = 0; e < c.H * c.T; ++e) {
    table.x[static_cast<size_t>(e)] = e % c.T == 0 ? -1e4 : -0.1 * static_cast<double>(e % c.T);
  }
  for (const Operation& op : {alone, first}) {
    Machine machine = checked_machine(1e-4);
    const std::vector<double> lse = run(op, machine, 0.5).results.at("lse").x;
    CHECK(lse[static_cast<size_t>((c.H - 1) * c.T)] < -9990);
  }
}

// A row's dz sum to 0. So do their contributions to c1 of such a unit, up to rounding.
TEST_CASE("hidden units of a mix that no key turns off, or none on, pass") {
  AttentionCase c = attention_form();
  c.scale = ScaleForm::none;
  c.mix = MixForm::concat_residual;
  Operation op = attention(c);
  op.inputs.at("c1").x[0] = 100;
  op.inputs.at("c1").x[1] = -100;
  Machine machine = checked_machine(1e-4);
  CHECK_NOTHROW(run(op, machine, 0.5));
}

// When training begins, the scores and the network's weights are small. What it adds is nearly the
// same for all keys of a row, and its gradients are 10^-3 of the terms that they sum.
TEST_CASE("mixes of heads pass at the beginning of a training") {
  for (const MixForm mix : {MixForm::concat, MixForm::concat_residual, MixForm::add_residual}) {
    AttentionCase c;
    c.B = 1;
    c.T = 256;
    c.D = 8;
    c.mix = mix;
    INFO(describe(c));
    Operation op = attention(c);
    const auto scaled = [&op](const char* name, double by) {
      for (double& x : op.inputs.at(name).x) x *= by;
    };
    for (const char* name : {"q", "k"}) scaled(name, 0.14);
    for (const char* name : {"w1", "w2"}) scaled(name, 0.02);
    for (const char* name : {"c1", "c2"}) scaled(name, 0);
    Machine machine = checked_machine(1e-4);
    CHECK_NOTHROW(run(op, machine, 0.5));
  }
}

// Their gradients are sums over rows of dz, on backends that round `out`.
TEST_CASE("biases that read queries and keys, and mixes of heads, pass in bf16") {
  for (const TableForm table : {TableForm::relative, TableForm::contextual, TableForm::falling,
                                TableForm::difference, TableForm::fire}) {
    AttentionCase c = attention_form();
    c.table = table;
    c.scale = ScaleForm::none;
    if (!reads_content(table)) c.mix = MixForm::concat_residual;
    INFO(describe(c));
    Operation op = attention(c);
    Machine machine(Dtype::bf16, {make_check_backend(make_cpu_backend(), make_reference_backend()),
                                  &heap_memory()});
    CHECK_NOTHROW(run(op, machine, 0.5));
  }
}

TEST_CASE("an operation past the limit is named, with both values, and a backward pass is too") {
  const auto check_named = [](const char* name, auto&& pass) {
    try {
      pass();
      FAIL("no error from " << name);
    } catch (const Error& e) {
      const std::string text = e.what();
      INFO(text);
      CHECK(e.code() == ExitCode::internal);
      CHECK(text.find(name) == 0);
      CHECK(text.find("reference") != std::string::npos);
      CHECK(text.find("cpu") != std::string::npos);
    }
  };
  for (const Named& n : operations()) {
    // fp32 always differs from fp64 by more than this.
    Machine machine = checked_machine(1e-12), good(Dtype::f32);
    check_named(n.forward, [&] { n.op.forward(machine, n.op.inputs); });
    if (n.backward[0] == '\0') continue;
    const Arrays saved = n.op.forward(good, n.op.inputs);
    check_named(n.backward, [&] {
      n.op.adjoint(machine, n.op.inputs, saved, cotangents_of(n.op, saved), 0.5);
    });
  }
}

/// A step of the optimizer over n parameters whose weights are also rounded to bf16.
struct CheckedStep {
  static constexpr int64_t n = 100;
  Machine machine;
  Values before = random_values(Role::parameter, {n}, "w");
  Memory w = machine.memory(before), g = machine.memory(random_values(Role::parameter, {n}, "g"));
  Memory m = machine.zeros(Role::parameter, {n}), v = machine.zeros(Role::parameter, {n});
  Memory rounded = machine.unwritten(Role::activation, {n});

  explicit CheckedStep(std::unique_ptr<Backend> backend)
      : machine(Dtype::bf16, {std::move(backend), &heap_memory()}) {}
  void run(const Tensor& factor) {
    OptimizerStep s;
    s.lr = 0.01;
    s.rule.beta1 = 0.9;
    s.rule.beta2 = 0.95;
    s.rule.eps = 1e-8;
    machine.backend().optimizer_step(w.tensor(), m.tensor(), v.tensor(), rounded.tensor(),
                                     g.tensor(), factor, step_factors(machine, s).tensor(), s.rule);
  }
};

TEST_CASE("weights and moments keep the limit of fp32 where the step rounds the weights to bf16") {
  CheckedStep step(make_check_backend(make_cpu_backend(), make_reference_backend(),
                                      {.f32 = 1e-12, .bf16 = 0.02}));
  try {
    step.run({});
    FAIL("no error");
  } catch (const Error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find("optimizer_step: weights") == 0);
  }
}

TEST_CASE("a step that a NaN factor stops passes, though it leaves the rounded weights unwritten") {
  CheckedStep step(checked(1e-4));
  const Memory factor = step.machine.memory(constant_values(Role::wide, {1}, std::nan("")));
  CHECK_NOTHROW(step.run(factor.tensor()));
  check_equal(read(step.w.tensor(), Role::parameter).x,
              round_to({{"w", step.before}}, step.machine).at("w").x);
}

}  // namespace
}  // namespace bamtrain::testing
