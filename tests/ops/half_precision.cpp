// What bf16 costs the gradients of priors' and scales' parameters, of every mechanism that has any.
//
// The backward pass forms D_i = <dout_i, out_i> from a rounded `out`, so that all dz_ij of a row
// are off by -p_ij e_i with one e_i for the row, and the gradient of a parameter, the sum over all
// rows of dz_ij db_ij, by e_i times the mean of db_ij in each. What it is made of are the
// deviations from that mean.

#include <map>
#include <string>

#include "catch.h"
#include "mechanisms.h"

namespace bamtrain::testing {
namespace {

/// The largest relative error of a parameter's gradient. By what was measured, 1 % and less, where
/// the mean of its derivative over a row is of the size of the deviations.
double limit(const std::string& parameter, const std::string& scale) {
  static const std::map<std::string, double> kOthers = {
      // The derivative grows with distance and with t. At T 1,024 the gradient happens to be a
      // seventh of its size at 256, its error is of the same size.
      {"bam.theta_beta, ssmax", 0.4},
      {"bam.theta_alpha, ssmax", 0.1},
      // The derivative is the bias, and at the initial values that is nearly the same for all keys.
      {"bam.theta_alpha", 0.05},
      // t = log n: a few keys have all of the weight, and the mean of s over them is many times its
      // deviations.
      {"ssmax.s", 0.15},
      // Lines of 32 units, most of whose slopes cancel in the sum over all of them.
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
    Machine half(Dtype::bf16, CpuIsa::avx512, shape), single(Dtype::f32, CpuIsa::avx512, shape);
    for (const Mechanisms& of : all_mechanisms()) {
      const Arrays truth = parameter_gradients(single, of, T);
      const Arrays found = parameter_gradients(half, of, T);
      for (const auto& [name, v] : truth) {
        INFO(name << " of " << of.prior.name << " with " << of.scale.name << ", T " << T);
        if (name == "lse") {
          // Nothing on its way is rounded to bf16.
          check_equal(found.at(name).x, v.x);
          continue;
        }
        // A constant added to all logits: no gradient but the residues.
        if (name == "fire.b2") continue;
        const double error = relative_error(found.at(name).x, v.x);
        INFO("error " << error);
        CHECK(error <= limit(name, of.scale.name));
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
