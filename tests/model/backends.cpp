// Whole models on the CPU backend: compared with the reference beyond one tile, and bitwise
// identical for any number of threads.

#include <cmath>

#include "build.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

/// Heads of 48 channels, as in the paper's 120M model.
ModelConfig wide_config(const std::string& prior_name, const std::string& scale_name) {
  ModelConfig c = small_config();
  c.vocab = 301;
  c.width = 192;
  c.mlp.hidden = 250;
  c.attention.prior = priors({prior_name});
  c.attention.scale = scale(scale_name);
  c.attention.document_mask = true;
  return c;
}

TEST_CASE("models with several tiles agree with the reference in fp32 and bf16") {
  for (const auto& [prior_name, scale_name] :
       {std::pair{"bam", "ssmax"}, std::pair{"rope", "none"}, std::pair{"learned", "ssmax"},
        std::pair{"alibi", "adaptive"}}) {
    const ModelConfig c = wide_config(prior_name, scale_name);
    const Batch batch = random_batch(2, 130, c.vocab);
    INFO(describe(c));
    Run truth(c, Dtype::f64, 2, 130);
    round_weights(truth);
    const double loss = truth.differentiate(batch);
    const std::vector<double> logits = truth.logits(batch);
    for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
      Run run(c, t, 2, 130);
      round_weights(run);
      // fp32: as in golden.cpp. bf16: about 30 roundings in sequence, of mean size 2^-8 / sqrt(6),
      // and a softmax in between.
      const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;
      CHECK(std::abs(run.differentiate(batch) - loss) <= tolerance);
      CHECK(distance(run.logits(batch), logits) <= tolerance * norm(logits));
      const GradientErrors errors(run, truth);
      INFO("worst: " << errors.name);
      CHECK(errors.all <= 3 * tolerance);
      // A prior's gradient is a sum over distances, whose terms are far larger.
      CHECK(errors.worst <= (t == Dtype::f32 ? 16 : 8) * tolerance);
    }
  }
}

/// A copy of everything that a training step reads from a model.
struct Step {
  double loss;
  std::vector<double> gradients;

  Step(const ModelConfig& c, Dtype t, const Batch& batch, int threads) {
    const Threads limit(threads);
    Run run(c, t, batch.B, batch.T);
    loss = run.differentiate(batch);
    gradients = read(run.gradients(), Role::parameter).x;
  }
};

void check_threads(const ModelConfig& c, const Batch& batch) {
  for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
    const Step one(c, t, batch, 1);
    CHECK(norm(one.gradients) > 0);
    for (int threads : {2, 4}) {
      INFO(describe(c) << " in " << name_of(t) << ", " << threads << " threads");
      const Step several(c, t, batch, threads);
      CHECK(several.loss == one.loss);
      check_equal(several.gradients, one.gradients);
    }
  }
}

TEST_CASE("loss and gradients have the same bits with 1, 2 and 4 threads") {
  for (const auto& [prior_name, scale_name] :
       {std::pair{"bam", "ssmax"}, std::pair{"rope", "none"}, std::pair{"learned", "ssmax"},
        std::pair{"alibi", "none"}, std::pair{"cable", "adaptive"},
        std::pair{"transformer_xl", "none"}, std::pair{"cope", "none"},
        std::pair{"dape over kerple", "none"}}) {
    ModelConfig c = wide_config(prior_name, scale_name);
    c.bias = true;
    check_threads(c, random_batch(3, 130, c.vocab));
  }
}

TEST_CASE("width 64 with 4,096 tokens has the same bits with 1, 2 and 4 threads") {
  ModelConfig c = small_config();
  c.vocab = 500;
  c.width = 64;
  c.mlp.hidden = 64;
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  c.attention.document_mask = true;
  check_threads(c, random_batch(16, 256, c.vocab));
}

TEST_CASE("a second pass on the same memory gives the bits of the first") {
  const ModelConfig c = wide_config("bam", "ssmax");
  const Batch batch = random_batch(2, 130, c.vocab);
  for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
    Run run(c, t, 2, 130);
    const double loss = run.differentiate(batch);
    const std::vector<double> first = read(run.gradients(), Role::parameter).x;
    // A different pass in between, shorter and without a backward pass.
    run.loss(random_batch(1, 70, c.vocab));
    CHECK(run.differentiate(batch) == loss);
    check_equal(read(run.gradients(), Role::parameter).x, first);
  }
}

}  // namespace
}  // namespace bamtrain::testing
