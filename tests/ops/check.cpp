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

AttentionCase attention_form() {
  AttentionCase c;
  c.T = 19;
  c.H = 2;
  c.K = 1;
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

/// Runs attention forward and backward, and checks that `machine` reports no difference. Returns
/// the forward results.
Arrays check_both_passes(Machine& machine, const Operation& op, const AttentionCase& c) {
  Arrays saved = op.forward(machine, op.inputs);
  const Arrays cotangents = {{"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "d")}};
  CHECK_NOTHROW(op.adjoint(machine, op.inputs, saved, cotangents, 0.5));
  return saved;
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
    Machine machine(Dtype::f32, {checked(1e-4), &heap_memory()}), cpu(Dtype::f32);
    const Arrays expected = n.op.forward(cpu, n.op.inputs);
    const Arrays found = n.op.forward(machine, n.op.inputs);
    for (const auto& [name, v] : expected) check_equal(found.at(name).x, v.x);
    if (!n.op.adjoint) continue;
    Arrays cotangents = n.op.cotangents;
    for (const std::string& name : n.op.differentiated) {
      if (!cotangents.count(name)) {
        cotangents[name] = random_values(found.at(name).role, found.at(name).shape, name);
      }
    }
    CHECK_NOTHROW(n.op.adjoint(machine, n.op.inputs, found, cotangents, 0.5));
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
    Machine machine(Dtype::f32, {checked(1e-4), &heap_memory()});
    const Arrays saved = check_both_passes(machine, op, c);
    CHECK(saved.at("lse").x[static_cast<size_t>((c.H - 1) * c.T)] < -9990);
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
  Machine machine(Dtype::f32, {checked(1e-4), &heap_memory()});
  check_both_passes(machine, op, c);
}

// When training begins, the scores and the network's weights are small. What it adds is nearly the
// same for all keys of a row, and its gradients are 10^-3 of the terms that they sum.
TEST_CASE("mixes of heads pass at the beginning of a training") {
  for (const MixForm mix : {MixForm::concat, MixForm::concat_residual, MixForm::add_residual}) {
    AttentionCase c;
    c.B = 1;
    c.T = 256;
    c.H = 4;
    c.K = 2;
    c.mix = mix;
    INFO(describe(c));
    Operation op = attention(c);
    const auto scaled = [&op](const char* name, double by) {
      for (double& x : op.inputs.at(name).x) x *= by;
    };
    for (const char* name : {"q", "k"}) scaled(name, 0.14);
    for (const char* name : {"w1", "w2"}) scaled(name, 0.02);
    for (const char* name : {"c1", "c2"}) scaled(name, 0);
    Machine machine(Dtype::f32, {checked(1e-4), &heap_memory()});
    check_both_passes(machine, op, c);
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
    check_both_passes(machine, op, c);
  }
}

TEST_CASE("an operation past the limit is named, with both values") {
  for (const Named& n : operations()) {
    // fp32 always differs from fp64 by more than this.
    Machine machine(Dtype::f32, {checked(1e-12), &heap_memory()});
    try {
      n.op.forward(machine, n.op.inputs);
      FAIL("no error from " << n.forward);
    } catch (const Error& e) {
      const std::string text = e.what();
      INFO(text);
      CHECK(e.code() == ExitCode::internal);
      CHECK(text.find(n.forward) == 0);
      CHECK(text.find("reference") != std::string::npos);
      CHECK(text.find("cpu") != std::string::npos);
    }
  }
}

TEST_CASE("a backward pass past the limit is named") {
  for (const Named& n : operations()) {
    if (n.backward[0] == '\0') continue;
    Machine good(Dtype::f32), strict(Dtype::f32, {checked(1e-12), &heap_memory()});
    const Arrays saved = n.op.forward(good, n.op.inputs);
    Arrays cotangents = n.op.cotangents;
    for (const std::string& name : n.op.differentiated) {
      if (!cotangents.count(name)) {
        cotangents[name] = random_values(saved.at(name).role, saved.at(name).shape, name);
      }
    }
    try {
      n.op.adjoint(strict, n.op.inputs, saved, cotangents, 0.5);
      FAIL("no error from " << n.backward);
    } catch (const Error& e) {
      INFO(e.what());
      CHECK(std::string(e.what()).find(n.backward) == 0);
    }
  }
}

TEST_CASE("weights and moments keep the limit of fp32 where the step rounds the weights to bf16") {
  constexpr int64_t n = 100;
  Machine machine(Dtype::bf16, {make_check_backend(make_cpu_backend(), make_reference_backend(),
                                                   {.f32 = 1e-12, .bf16 = 0.02}),
                                &heap_memory()});
  const Memory w = machine.memory(random_values(Role::parameter, {n}, "w"));
  const Memory g = machine.memory(random_values(Role::parameter, {n}, "g"));
  const Memory m = machine.zeros(Role::parameter, {n}), v = machine.zeros(Role::parameter, {n});
  const Memory rounded = machine.unwritten(Role::activation, {n});
  OptimizerStep s;
  s.lr = 0.01;
  s.rule.beta1 = 0.9;
  s.rule.beta2 = 0.95;
  s.rule.eps = 1e-8;
  try {
    machine.backend().optimizer_step(w.tensor(), m.tensor(), v.tensor(), rounded.tensor(),
                                     g.tensor(), {}, step_factors(machine, s).tensor(), s.rule);
    FAIL("no error");
  } catch (const Error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find("optimizer_step: weights") == 0);
  }
}

TEST_CASE("a step that a NaN factor stops passes, though it leaves the rounded weights unwritten") {
  constexpr int64_t n = 100;
  Machine machine(Dtype::bf16, {checked(1e-4), &heap_memory()});
  const Values before = random_values(Role::parameter, {n}, "w");
  const Memory w = machine.memory(before);
  const Memory g = machine.memory(random_values(Role::parameter, {n}, "g"));
  const Memory m = machine.zeros(Role::parameter, {n}), v = machine.zeros(Role::parameter, {n});
  const Memory rounded = machine.zeros(Role::activation, {n});
  const Memory factor = machine.memory(constant_values(Role::wide, {1}, std::nan("")));
  OptimizerStep s;
  s.lr = 0.01;
  CHECK_NOTHROW(machine.backend().optimizer_step(w.tensor(), m.tensor(), v.tensor(),
                                                 rounded.tensor(), g.tensor(), factor.tensor(),
                                                 step_factors(machine, s).tensor(), s.rule));
  check_equal(read(w.tensor(), Role::parameter).x,
              read(machine.memory(before).tensor(), Role::parameter).x);
}

}  // namespace
}  // namespace bamtrain::testing
