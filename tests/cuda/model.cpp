// Whole models on the CUDA backend against the fp64 reference, recorded and replayed.

#include <cmath>

#include "catch.h"
#include "cuda/device.h"
#include "model/build.h"
#include "model/random_positions.h"

namespace bamtrain::testing {
namespace {

/// small_config with sizes that the device takes.
ModelConfig device_config(const std::string& prior_name, const std::string& scale_name) {
  ModelConfig c = small_config();
  c.width = 64;
  c.heads = 4;
  c.kv_heads = 2;
  c.mlp.hidden = 40;
  c.vocab = 67;
  c.attention.prior = prior(prior_name);
  c.attention.scale = scale(scale_name);
  c.attention.document_mask = true;
  return c;
}

double gradient_error(const Run& run, const Run& truth) {
  double error = 0, whole = 0;
  for (const Parameter& p : truth.parameters()) {
    const std::vector<double> g = truth.gradient(p.name);
    whole = std::hypot(whole, norm(g));
    error = std::hypot(error, distance(run.gradient(p.name), g));
  }
  return error / whole;
}

/// A model with the bits of its first pass at the second, which is recorded, and at the third,
/// which replays the recording.
void check_against_reference(const ModelConfig& c) {
  const Batch batch = random_batch(2, 40, c.vocab);
  INFO(describe(c));
  Run truth(c, Dtype::f64, 2, 40);
  round_weights(truth);
  const double loss = truth.differentiate(batch);
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    INFO(name_of(t));
    Run run(c, t, 2, 40, cuda_device());
    round_weights(run);
    // As in tests/model/backends.cpp.
    const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;
    const double first_loss = run.differentiate(batch);
    CHECK(std::abs(first_loss - loss) <= tolerance);
    CHECK(gradient_error(run, truth) <= 3 * tolerance);
    const std::vector<double> first = read(run.gradients(), Role::parameter).x;
    for (int pass = 0; pass < 2; ++pass) {
      CHECK(run.differentiate(batch) == first_loss);
      check_equal(read(run.gradients(), Role::parameter).x, first);
    }
    // And reads the tokens of the moment. Not those of c.vocab - 1: with fire and ssmax that batch
    // magnifies the roundings of bf16 to 0.16 of the gradient on every backend.
    const Batch other = random_batch(2, 40, c.vocab - 2);
    const double other_loss = run.differentiate(other);
    CHECK(std::abs(other_loss - truth.differentiate(other)) <= tolerance);
    CHECK(gradient_error(run, truth) <= 3 * tolerance);
    truth.differentiate(batch);
  }
}

TEST_CASE("models on CUDA agree with the reference in fp32 and bf16") {
  for (const auto& [prior_name, scale_name] :
       {std::pair{"bam", "ssmax"}, std::pair{"rope", "none"}, std::pair{"learned", "ssmax"},
        std::pair{"alibi", "sentmax"}, std::pair{"nape", "ssmax"}, std::pair{"kerple", "none"},
        std::pair{"t5", "none"}, std::pair{"nope", "by_length"}, std::pair{"cable", "none"},
        std::pair{"kcable", "ssmax"}, std::pair{"bam", "adaptive"}, std::pair{"nape", "adaptive"},
        std::pair{"cable", "adaptive"}, std::pair{"fire", "none"}, std::pair{"fire", "ssmax"}}) {
    ModelConfig c = device_config(prior_name, scale_name);
    c.tied = prior_name == std::string("learned");
    c.bias = c.tied;
    if (prior_name == std::string("bam") && scale_name == std::string("adaptive")) {
      c.attention.scale = scale("adaptive", {{"bias", true}});
    }
    check_against_reference(c);
  }
}

TEST_CASE("models on CUDA whose layers have different priors agree with the reference") {
  for (const auto& [list, scale_name] :
       {std::pair{std::vector<std::string>{"rope_local", "bam"}, "ssmax"},
        std::pair{std::vector<std::string>{"cable", "alibi"}, "none"},
        std::pair{std::vector<std::string>{"cable", "alibi"}, "adaptive"},
        std::pair{std::vector<std::string>{"kcable", "nape"}, "sentmax"},
        std::pair{std::vector<std::string>{"t5", "cable", "nope", "kcable"}, "none"}}) {
    ModelConfig c = device_config("nope", scale_name);
    c.layers = static_cast<int64_t>(list.size());
    c.attention.prior = priors(list);
    c.bias = scale_name == std::string("none");
    check_against_reference(c);
  }
}

TEST_CASE("a replayed pass reads the random positions of the moment") {
  ModelConfig c = device_config("rope", "none");
  c.attention.prior = prior("rope", {{"theta", 50.0}, {"randomized", true}});
  Batch batch = random_batch(2, 40, c.vocab);
  batch.positions.resize(80);
  const Rng rng(1, "positions");
  Run truth(c, Dtype::f64, 2, 40), run(c, Dtype::f32, 2, 40, cuda_device());
  for (int64_t pass = 0; pass < 4; ++pass) {
    for (int64_t b = 0; b < 2; ++b) {
      draw_positions(rng, 2 * pass + b, 160, 40, batch.positions.data() + 40 * b);
    }
    const double loss = truth.differentiate(batch);
    CHECK(std::abs(run.differentiate(batch) - loss) <= 100 * kF32);
    CHECK(gradient_error(run, truth) <= 300 * kF32);
  }
}

TEST_CASE("recomputed activations change no bit on CUDA") {
  const ModelConfig c = device_config("bam", "ssmax");
  const Batch batch = random_batch(2, 40, c.vocab);
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    Run all(c, t, 2, 40, cuda_device());
    const double loss = all.differentiate(batch);
    for (const Recompute r : {Recompute::mlp, Recompute::block}) {
      Run run(c, t, 2, 40, cuda_device(), r);
      // As it is, recorded, replayed.
      for (int pass = 0; pass < 3; ++pass) {
        CHECK(run.differentiate(batch) == loss);
        check_equal(read(run.gradients(), Role::parameter).x,
                    read(all.gradients(), Role::parameter).x);
      }
    }
  }
}

TEST_CASE("models with the entropy scale on CUDA agree with the reference in fp32 and bf16") {
  for (const char* prior_name : {"nope", "rope", "nape", "cable", "fire"}) {
    const ModelConfig c = device_config(prior_name, "entropy");
    const Batch batch = random_batch(2, 40, c.vocab);
    INFO(prior_name);
    Run truth(c, Dtype::f64, 2, 40, ModelUse::evaluation);
    round_weights(truth);
    const std::vector<double> logits = truth.logits(batch);
    Run plain(device_config(prior_name, "none"), Dtype::f64, 2, 40, ModelUse::evaluation);
    round_weights(plain);
    CHECK(distance(plain.logits(batch), logits) > 0.05 * norm(logits));
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      INFO(name_of(t));
      Run run(c, t, 2, 40, cuda_device(), Recompute::none, ModelUse::evaluation);
      round_weights(run);
      const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;  // as above
      CHECK(distance(run.logits(batch), logits) <= tolerance * norm(logits));
    }
  }
}

TEST_CASE("shapes without kernels are refused before the first step, with the key") {
  const auto refused = [](const ModelConfig& c, Dtype t, const std::string& key) {
    INFO(key);
    try {
      const Run run(c, t, 1, 16, cuda_device());
      FAIL("planned");
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::config);
      CHECK(e.where() == key);
    }
  };
  ModelConfig c = device_config("bam", "ssmax");
  c.width = 4 * 20;  // heads of 20
  refused(c, Dtype::bf16, "model.heads");
  CHECK_NOTHROW(Run(c, Dtype::f32, 1, 16, cuda_device()));
  c = device_config("bam", "ssmax");
  for (const int64_t hidden : {20, 21, 44}) {  // of a gated mlp, 40, 42 and 88 columns
    c.mlp.hidden = hidden;
    refused(c, Dtype::f32, "model.mlp.hidden");
  }
  c = device_config("bam", "ssmax");
  c.width = 12;
  c.heads = c.kv_heads = 1;
  refused(c, Dtype::f32, "model.width");
}

}  // namespace
}  // namespace bamtrain::testing
