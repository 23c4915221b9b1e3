#pragma once
// The bf16 error of gate and bias gradients in a whole model, on any backend.

#include <functional>
#include <memory>

#include "catch.h"
#include "model/build.h"

namespace bamtrain::testing {

/// Sums of gates accumulate the rounding errors of attention's gradient rows (ops.h), so an error
/// there grows with T. In a model of one layer, checks every trained parameter of the priors with
/// such rows against fp32 on the CPU backend. `make`: creates the same model in bf16, for (1, T).
inline void check_half_precision(
    int64_t T, const std::function<std::unique_ptr<Run>(const ModelConfig&)>& make) {
  struct Case {
    PriorChoice prior;
    ScaleChoice scale;
    // 1.5 times the error measured on the CUDA backend at T 64 to 2,048. Leaving out the query's
    // part of the sums gives 2 to 160 % (cable) and 3 to 1,300 % (with ssmax).
    double limit;
  };
  const Case cases[] = {
      {prior("cable"), scale("none"), 0.02},
      {prior("cable"), scale("ssmax", {{"scale_bias", std::string("true")}}), 0.085},
      {prior("kcable"), scale("none"), 0.045},
      {prior("bam"), scale("none"), 0.015}};
  for (const auto& [of_prior, of_scale, limit] : cases) {
    ModelConfig c = small_config();
    c.layers = 1;
    c.width = 64;
    c.mlp.hidden = 40;
    c.vocab = 67;
    c.attention.prior = of_prior;
    c.attention.scale = of_scale;
    const Batch batch = random_batch(1, T, c.vocab, false);
    Run truth(c, Dtype::f32, 1, T);
    const std::unique_ptr<Run> run = make(c);
    for (Run* r : {&truth, run.get()}) {
      round_weights(*r);
      r->differentiate(batch);
    }
    int64_t checked = 0;
    for (const Parameter& p : run->parameters()) {
      if (p.name.find(".prior.") == std::string::npos || !p.trained) continue;
      const std::vector<double> found = run->gradient(p.name), expected = truth.gradient(p.name);
      const double error = distance(found, expected) / norm(expected);
      INFO(p.name << " of " << describe(c) << ", T " << T << ": " << error);
      CHECK(error <= limit);
      ++checked;
    }
    CHECK(checked > 0);
  }
}

}  // namespace bamtrain::testing
