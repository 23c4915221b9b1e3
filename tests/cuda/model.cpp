// Whole models on the CUDA backend, recorded and replayed, compared with the fp64 reference.

#include <cmath>
#include <set>

#include "catch.h"
#include "core/ignore_index.h"
#include "cuda/attention_shapes.h"
#include "cuda/device.h"
#include "mixes/registry.h"
#include "model/build.h"
#include "model/half_precision.h"
#include "model/random_positions.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

ModelConfig device_config(const PriorChoice& prior, const ScaleChoice& scale) {
  ModelConfig c = bamtrain::testing::device_config(prior);
  c.attention.scale = scale;
  return c;
}
ModelConfig device_config(const std::string& prior_name, const std::string& scale_name) {
  return device_config(prior(prior_name), scale(scale_name));
}

/// `tolerance` is the loss's. As in tests/model/backends.cpp.
void check_gradients(const Run& run, const Run& truth, Dtype t, double tolerance) {
  const GradientErrors errors(run, truth);
  INFO("worst: " << errors.name);
  CHECK(errors.all <= 3 * tolerance);
  CHECK(errors.worst <= (t == Dtype::f32 ? 16 : 8) * tolerance);
}

/// Long tests: both precisions of model n; otherwise one.
std::vector<Dtype> precisions(size_t n) {
  std::vector<Dtype> all;
  if (is_run(n, 0, 2)) all.push_back(Dtype::f32);
  if (is_run(n, 1, 2)) all.push_back(Dtype::bf16);
  return all;
}

/// Compares a model with the reference. The second pass, which is recorded, and the third, which
/// replays the recording, are bitwise identical with the first.
void check_against_reference(const ModelConfig& c, const std::vector<Dtype>& types) {
  const Batch batch = random_batch(2, 40, c.vocab);
  INFO(describe(c));
  Run truth(c, Dtype::f64, 2, 40);
  round_weights(truth);
  const double loss = truth.differentiate(batch);
  for (Dtype t : types) {
    INFO(name_of(t));
    Run run(c, t, 2, 40, cuda_device());
    round_weights(run);
    // As in tests/model/backends.cpp.
    const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;
    const double first_loss = run.differentiate(batch);
    CHECK(std::abs(first_loss - loss) <= tolerance);
    check_gradients(run, truth, t, tolerance);
    const std::vector<double> first = read(run.gradients(), Role::parameter).x;
    for (int pass = 0; pass < 2; ++pass) {
      CHECK(run.differentiate(batch) == first_loss);
      check_equal(read(run.gradients(), Role::parameter).x, first);
    }
    // A replay reads the current tokens. Not the batch of c.vocab - 1: with fire and ssmax it
    // amplifies bf16 rounding to 0.16 of the gradient on every backend.
    const Batch other = random_batch(2, 40, c.vocab - 2);
    const double other_loss = run.differentiate(other);
    CHECK(std::abs(other_loss - truth.differentiate(other)) <= tolerance);
    check_gradients(run, truth, t, tolerance);
    truth.differentiate(batch);
  }
}

// With bf16 rounding, keys enter or leave the nonzero keys, or cope's counts cross a position, and
// gradients jump on every backend. So CUDA may be at most twice as far from the reference as the
// CPU, whose weights and dz are not rounded.
void check_beside_cpu(const ModelConfig& c) {
  const Batch batch = random_batch(2, 40, c.vocab);
  const NormalizerChoice& normalizer = c.attention.normalizer;
  INFO(describe(c) << ", " << (normalizer ? normalizer.name() : "softmax"));
  Run truth(c, Dtype::f64, 2, 40);
  round_weights(truth);
  const double loss = truth.differentiate(batch);
  for (Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
    INFO(name_of(t));
    Run cuda(c, t, 2, 40, cuda_device()), cpu(c, t, 2, 40);
    round_weights(cuda);
    round_weights(cpu);
    const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;
    const double first = cuda.differentiate(batch);
    CHECK(std::abs(first - loss) <= tolerance);
    cpu.differentiate(batch);
    const GradientErrors errors(cuda, truth), expected(cpu, truth);
    INFO("worst: " << errors.name << ", on the CPU " << expected.name);
    CHECK(errors.all <= std::max(3 * tolerance, 2 * expected.all));
    CHECK(errors.worst <= std::max((t == Dtype::f32 ? 16 : 8) * tolerance, 2 * expected.worst));
    const std::vector<double> gradients = read(cuda.gradients(), Role::parameter).x;
    for (int pass = 0; pass < 2; ++pass) {  // recorded, and replayed
      CHECK(cuda.differentiate(batch) == first);
      check_equal(read(cuda.gradients(), Role::parameter).x, gradients);
    }
  }
}

TEST_CASE("models on CUDA agree with the reference in fp32 and bf16") {
  using Text = std::string;
  const std::pair<PriorChoice, ScaleChoice> models[] = {
      {prior("bam"), scale("ssmax")},
      {prior("rope"), scale("none")},
      {prior("learned"), scale("ssmax")},
      {prior("alibi"), scale("sentmax")},
      {prior("nape"), scale("ssmax")},
      {prior("kerple"), scale("none")},
      {prior("t5"), scale("none")},
      {prior("nope"), scale("by_length")},
      {prior("cable"), scale("none")},
      {prior("kcable"), scale("ssmax")},
      {prior("cable", {{"content_scale", Text("1")}}), scale("constant", {{"t", 0.5}})},
      {prior("kcable", {{"content_scale", Text("1/sqrt(C)")}}), scale("ssmax")},
      {prior("bam"), scale("adaptive", {{"bias", true}})},
      {prior("nape"), scale("adaptive")},
      {prior("cable"), scale("adaptive")},
      {prior("fire"), scale("none")},
      {prior("fire"), scale("ssmax")},
      {prior("sinusoidal"), scale("sentmax", {{"train_gamma", false}})},
      {prior("rope", {{"theta", 50.0}, {"scaling", Text("yarn")}, {"factor", 4.0}}),
       scale("constant", {{"t", 0.7}})},
      {prior("rope_local", {{"window", 9.0}, {"scaling", Text("llama3")}, {"factor", 4.0}}),
       scale("none")},
      {prior("kerple", {{"kernel", Text("power")}}), scale("ssmax")},
      {prior("t5", {{"share", false}}), scale("constant", {{"t", 1.5}})},
      {prior("bam", {{"share", true}, {"train", StringList{"theta_beta", "theta_mu"}}}),
       scale("none")},
      {prior("nape", {{"slopes", Text("harmonic")}}), scale("sentmax", {{"train_gamma", false}})}};
  std::set<std::string> met;
  size_t n = 0;
  for (const auto& [of_prior, of_scale] : models) {
    ModelConfig c = device_config(of_prior, of_scale);
    c.bias = c.tied = of_prior.name() == "learned";
    check_against_reference(c, precisions(n++));
    met.insert({of_prior.name(), of_scale.name()});
  }
  // No mechanism is left out; evaluation-only scales follow below.
  for (const PriorInfo& p : all_priors()) {
    if (!met.insert(p.name).second) continue;
    const ModelConfig c = device_config(p.name, "none");
    p.is<ContextualFamily>() ? check_beside_cpu(c) : check_against_reference(c, precisions(n++));
  }
  for (const MixInfo& m : all_mixes()) {
    for (const char* base : {"rope", "kerple", "cable"}) {
      ModelConfig c = device_config(base, "ssmax");
      c.attention.prior = mixed(m.name, prior(base));
      check_against_reference(c, precisions(n++));
    }
  }
  for (const ScaleInfo& s : all_scales()) {
    if (s.evaluation_only) {
      CHECK(met.count(s.name) == 0);
    } else if (met.insert(s.name).second) {
      check_against_reference(device_config("nope", s.name), precisions(n++));
    }
  }
}

TEST_CASE("models with every normalizer on CUDA agree with the reference") {
  const std::tuple<NormalizerChoice, std::string, std::string> models[] = {
      {normalizer("entmax"), "nape", "adaptive"},
      {normalizer("entmax", {{"learned", true}, {"alpha", 1.3}}), "bam", "ssmax"},
      {normalizer("entmax", {{"alpha", 2.0}}), "cable", "none"},
      {normalizer("topk", {{"k", 5.0}}), "alibi", "sentmax"},
      {normalizer("topk"), "fire", "none"},
      {normalizer("stick_breaking"), "kcable", "none"},
      {normalizer("stick_breaking"), "rope", "none"}};
  std::set<std::string> met = {"softmax"};  // of the models above
  for (const auto& [of_normalizer, of_prior, of_scale] : models) {
    ModelConfig c = device_config(of_prior, of_scale);
    c.attention.normalizer = of_normalizer;
    check_beside_cpu(c);
    met.insert(of_normalizer.name());
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    if (!met.insert(n.name).second) continue;
    ModelConfig c = device_config("alibi", "none");
    c.attention.normalizer = normalizer(n.name);
    check_beside_cpu(c);
  }
}

TEST_CASE("blocks of every form on CUDA agree with the reference") {
  constexpr MlpKind kMlps[] = {MlpKind::relu, MlpKind::geglu, MlpKind::gelu_erf};
  size_t n = 0;
  for (NormPosition position : {NormPosition::pre, NormPosition::post, NormPosition::both}) {
    ModelConfig c = device_config(n == 1 ? "sinusoidal" : "rope", n == 2 ? "ssmax" : "none");
    c.norm_position = position;
    // Only if attention follows a norm: on embeddings of size 3, it has logits of size 15, whose
    // softmax amplifies bf16 rounding.
    c.embed_scale = position != NormPosition::post;
    c.own_head_dim = n == 1 ? 0 : 32;
    c.norm.kind = n == 1 ? NormKind::layernorm : NormKind::rmsnorm;
    c.bias = n == 1;
    c.tied = n == 0;
    c.mlp.kind = kMlps[n++];
    check_against_reference(c, {Dtype::f32, Dtype::bf16});
  }
}

TEST_CASE("gradients of gates and biases on CUDA in bf16 stay near fp32's as sequences grow") {
  for (const int64_t T : long_lengths()) {
    check_half_precision(T, [&](const ModelConfig& c) {
      return std::make_unique<Run>(c, Dtype::bf16, 1, T, cuda_device());
    });
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
    check_against_reference(c, {Dtype::f32, Dtype::bf16});
  }
}

TEST_CASE("the model of max_retrieval on CUDA agrees with the reference, recorded and replayed") {
  const std::pair<ScaleChoice, NormalizerChoice> models[] = {
      {scale("none"), {}},
      {scale("adaptive", {{"bias", true}}), normalizer("entmax")},
      {scale("ssmax"), normalizer("topk", {{"k", 2.0}})}};
  for (const auto& [of_scale, of_normalizer] : models) {
    ModelConfig c = retrieval_config();
    c.width = 64;
    c.mlp.hidden = 40;
    c.attention.scale = of_scale;
    c.attention.normalizer = of_normalizer;
    INFO(describe(c));
    const Batch batch = item_batch(40, {39, 11}), other = item_batch(40, {7, 30});
    Run truth(c, Dtype::f64, 2, 40), run(c, Dtype::f32, 2, 40, cuda_device());
    for (const Batch* b : {&batch, &batch, &batch, &other}) {
      const double loss = truth.differentiate(*b);
      CHECK(std::abs(run.differentiate(*b) - loss) <= 100 * kF32);
      check_gradients(run, truth, Dtype::f32, 100 * kF32);
    }
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
    check_gradients(run, truth, Dtype::f32, 100 * kF32);
  }
}

TEST_CASE("recomputed activations change no bit on CUDA") {
  for (NormPosition position : {NormPosition::pre, NormPosition::post, NormPosition::both}) {
    ModelConfig c = device_config("bam", "ssmax");
    c.norm_position = position;
    const Batch batch = random_batch(2, 40, c.vocab);
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      Run all(c, t, 2, 40, cuda_device());
      const double loss = all.differentiate(batch);
      for (const Recompute r : {Recompute::mlp, Recompute::block}) {
        Run run(c, t, 2, 40, cuda_device(), r);
        // Not recorded, recorded, replayed.
        for (int pass = 0; pass < 3; ++pass) {
          CHECK(run.differentiate(batch) == loss);
          check_equal(read(run.gradients(), Role::parameter).x,
                      read(all.gradients(), Role::parameter).x);
        }
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
  c = device_config("cope", "none");
  c.attention.prior = prior("cope", {{"positions", 1032.0}});
  refused(c, Dtype::bf16, "model.attention.prior (\"positions\" of cope)");
  c = device_config("nope", "none");
  c.attention.prior = priors({"dape over nope"});
  c.heads = c.kv_heads = 161;
  c.own_head_dim = 16;
  refused(c, Dtype::bf16, "model.heads");
  c = device_config("bam", "ssmax");
  for (const int64_t hidden : {20, 21, 44}) {  // of a gated mlp, 40, 42 and 88 columns
    c.mlp.hidden = hidden;
    refused(c, Dtype::f32, "model.mlp.hidden");
  }
  c = device_config("bam", "ssmax");
  c.width = 12;
  c.heads = c.kv_heads = 1;
  refused(c, Dtype::f32, "model.width");
  c = device_config("bam", "ssmax");
  c.heads = c.kv_heads = 2;
  c.own_head_dim = 30;
  refused(c, Dtype::f32, "model.head_dim");
}

// In bf16, ssmax amplifies rounding on every backend, to 0.1 of the gradient. CUDA rounds where the
// CPU does, so it may be at most a quarter farther from the reference than the CPU.
TEST_CASE(
    "bidirectional models on CUDA agree with the reference, padding and documents among them") {
  size_t n = 0;
  for (const PriorConfig& p : every_prior()) {
    if (p.of(0).info().causal_only) continue;
    ModelConfig c = device_config("nope", n % 2 == 0 ? "ssmax" : "none");
    c.attention.prior = p;
    c.attention.causal = false;
    c.attention.document_mask = n % 3 == 0;
    Batch batch = random_batch(2, 40, c.vocab);
    batch.set_lengths({40, n % 2 == 0 ? 23 : 1});
    ++n;
    INFO(describe(c));
    Run truth(c, Dtype::f64, 2, 40);
    round_weights(truth);
    const double loss = truth.differentiate(batch);
    for (Dtype t : with_products(precisions(n / 2))) {
      INFO(name_of(t));
      Run run(c, t, 2, 40, cuda_device());
      round_weights(run);
      const double tolerance = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;  // check_against_reference
      const double first = run.differentiate(batch);
      CHECK(std::abs(first - loss) <= tolerance);
      Run cpu(c, t, 2, 40);
      round_weights(cpu);
      cpu.differentiate(batch);
      const GradientErrors errors(run, truth), expected(cpu, truth);
      INFO("worst: " << errors.name << ", on the CPU " << expected.name);
      const double factor = t == Dtype::f32 ? 0.0 : 1.25;
      CHECK(errors.all <= std::max(3 * tolerance, factor * expected.all));
      CHECK(errors.worst <=
            std::max((t == Dtype::f32 ? 16 : 8) * tolerance, factor * expected.worst));
      const std::vector<double> gradients = read(run.gradients(), Role::parameter).x;
      for (int pass = 0; pass < 2; ++pass) {  // recorded, and replayed
        CHECK(run.differentiate(batch) == first);
        check_equal(read(run.gradients(), Role::parameter).x, gradients);
      }
    }
  }
}

// At this length partial tables take most of the memory of one operation.
TEST_CASE("bidirectional models on CUDA have memory for the distances on both sides") {
  constexpr int64_t T = 1024;
  ModelConfig c = device_config("bam", "none");
  c.attention.causal = false;
  c.layers = 1;
  Batch batch = random_batch(1, T, c.vocab);
  batch.set_lengths({T});
  Run run(c, Dtype::bf16, 1, T, cuda_device()), cpu(c, Dtype::bf16, 1, T);
  CHECK(std::abs(run.differentiate(batch) - cpu.differentiate(batch)) <= 5 * kBf16);
}

TEST_CASE("batches of several lengths on CUDA: each has its recording, and no trace of another") {
  for (const char* name : {"bam", "cable", "fire", "rope"}) {
    ModelConfig c = device_config(name, "ssmax");
    if (c.attention.prior.pattern[0].info().is<FireFamily>()) {
      c.attention.prior = prior("fire", {{"threshold_length", 9.0}});
    }
    const Batch longer = random_batch(2, 70, c.vocab);
    Batch batch = random_batch(2, 40, c.vocab);
    for (size_t i = 0; i < batch.targets.size(); i += 3) batch.targets[i] = kIgnoreIndex;
    INFO(describe(c));
    Run fresh(c, Dtype::f32, 2, 70, cuda_device()), used(c, Dtype::f32, 2, 70, cuda_device());
    const double loss = fresh.differentiate(batch);
    const std::vector<double> gradients = read(fresh.gradients(), Role::parameter).x;
    for (int pass = 0; pass < 3; ++pass) {
      used.differentiate(longer);
      CHECK(used.differentiate(batch) == loss);
      check_equal(read(used.gradients(), Role::parameter).x, gradients);
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
