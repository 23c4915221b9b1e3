// The bf16 error of gradients of priors' and scales' parameters, for every mechanism that has
// parameters.
//
// The backward pass computes D_i = <dout_i, out_i> from a rounded `out`, so all dz_ij of a row are
// off by -p_ij e_i, with the same e_i. The gradient of a parameter is the sum over all rows of
// dz_ij db_ij. It is off by e_i times the mean of db_ij in each row, but its terms are the
// deviations from that mean.

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attention_case.h"
#include "catch.h"
#include "mechanisms.h"

namespace bamtrain::testing {
namespace {

/// The largest relative error allowed for a parameter's gradient. Measured values are 1 % and less
/// if the mean of its derivative over a row is as large as the deviations.
double limit(const std::string& parameter, const std::string& scale) {
  static const std::map<std::string, double> kOthers = {
      // The derivative grows with distance and with t. At T 1,024 the gradient happens to be a
      // seventh of that at 256, with an error of the same size.
      {"bam.theta_beta, ssmax", 0.4},
      {"bam.theta_alpha, ssmax", 0.1},
      // The derivative is the bias, and at the initial values that is nearly the same for all keys.
      {"bam.theta_alpha", 0.05},
      // t = log n: a few keys have all the weight, and the mean of s over them is many times its
      // deviations.
      {"ssmax.s", 0.15},
      // Lines of 32 units; most of their slopes cancel in the sum over all units.
      {"fire.c", 0.05},
      {"fire.m", 0.05},
      {"fire.w1", 0.05},
      {"fire.b1", 0.1},
      {"fire.w2", 0.05}};
  for (const std::string& key : {parameter + ", " + scale, parameter}) {
    const auto other = kOthers.find(key);
    if (other != kOthers.end()) return other->second;
  }
  return 0.02;
}

TEST_CASE("gradients of every mechanism's parameters in bf16 are near those of fp32") {
  for (const int64_t T : {64, 256, 1024, 2048}) {
    const WorkspaceShape shape = mechanism_workspace(T);
    Machine half(Dtype::bf16, kNewestIsa, shape), single(Dtype::f32, kNewestIsa, shape);
    for (const Mechanisms& of : all_mechanisms()) {
      const Arrays truth = parameter_gradients(single, of, T);
      const Arrays found = parameter_gradients(half, of, T);
      for (const auto& [name, v] : truth) {
        INFO(name << " of " << of.prior.name << " with " << of.scale.name << ", T " << T);
        if (name == "lse") {
          // Nothing on this path is rounded to bf16; sums may have a different order.
          check_close(name, found.at(name), v, 4 * kF32 * std::sqrt(static_cast<double>(T)), 1);
          continue;
        }
        // A constant added to all logits: its gradient is only rounding error.
        if (name == "fire.b2") continue;
        const double error = relative_error(found.at(name).x, v.x);
        INFO("error " << error);
        CHECK(error <= limit(name, of.scale.name));
      }
    }
  }
}

/// Checks the gradients `names` of attention in bf16 against fp32, for inputs and cotangents that
/// are rounded first.
void compare_precisions(Machine& half, Machine& single, const AttentionCase& c, Operation op,
                        const std::vector<const char*>& names) {
  op.inputs = round_to(op.inputs, half);
  const Values dout = random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout");
  op.cotangents = round_to({{"out", dout}}, half);
  const Arrays truth = run(op, single).gradients, found = run(op, half).gradients;
  for (const char* name : names) {
    const double error = relative_error(found.at(name).x, truth.at(name).x);
    INFO(describe(c) << ", " << name << ": " << error);
    CHECK(error <= 0.02);
  }
}

// Gates come from scores: their gradients are part of the gradients of queries and keys.
TEST_CASE("gradients of gates and positions of cope in bf16 are near those of fp32") {
  for (const int64_t T : {64, 256, 1024, 2048}) {
    const WorkspaceShape shape = mechanism_workspace(T);
    Machine half(Dtype::bf16, kNewestIsa, shape), single(Dtype::f32, kNewestIsa, shape);
    for (const ScaleForm scale : kScaleForms) {
      AttentionCase c;
      c.B = 1;
      c.T = T;
      c.K = c.H;
      c.table = TableForm::contextual;
      c.scale = scale;
      c.own_rows = true;
      Operation op = attention(c);
      op.inputs.at("positions") =
          random_values(Role::parameter, {c.D, c.positions}, "positions", 0.1);
      compare_precisions(half, single, c, std::move(op), {"q", "k", "positions"});
    }
  }
}

// The network's gradients are sums over rows whose dz sum to zero.
TEST_CASE("gradients of mixed heads in bf16 are near those of fp32") {
  for (const int64_t T : {64, 256, 1024}) {
    WorkspaceShape shape = mechanism_workspace(T);
    shape.attention.push_back({.mix = MixForm::concat, .mix_hidden = 32});
    Machine half(Dtype::bf16, kNewestIsa, shape), single(Dtype::f32, kNewestIsa, shape);
    for (const TableForm table : {TableForm::falling, TableForm::fire}) {
      for (const MixForm form : {MixForm::concat_residual, MixForm::add_residual}) {
        AttentionCase c;
        c.B = 1;
        c.T = T;
        c.K = c.H;
        c.table = table;
        c.mix = form;
        c.hidden = 32;
        c.own_rows = true;
        compare_precisions(half, single, c, attention(c), {"q", "k", "v", "w1", "c1", "w2"});
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
