// A step allocates no memory outside the operations of its backend.

#include <string>
#include <vector>

#include "build.h"
#include "catch.h"
#include "model/count_allocations.h"
#include "model/null_backend.h"
#include "normalizers/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

/// Counts the allocations in the third to fifth pass over one batch, with weights refreshed each
/// time.
int64_t allocations_of_later_passes(const ModelConfig& config, Dtype activations) {
  constexpr int64_t B = 2, T = 32;
  NullBackend backend;
  Model model(config, T, backend, activations);
  Arena arena;
  Tensor master_weights, gradients;
  arena.add("masters", &master_weights, Dtype::f32, {model.parameters().elements()});
  arena.add("gradients", &gradients, Dtype::f32, {model.parameters().elements()});
  const ModelUse use = use_of(config);
  model.plan(arena, B, T, use, Recompute::none, true);
  arena.commit();
  model.set_master_weights(master_weights);
  const Batch batch = random_batch(B, T, config.vocab);
  std::vector<double> losses(static_cast<size_t>(B * T));
  std::vector<double> attention(
      static_cast<size_t>(B * config.layers * kAttentionStatistics * config.heads));
  int64_t before = 0;
  double loss = 0;
  for (int pass = 1; pass <= 5; ++pass) {
    if (pass == 3) before = allocations();
    model.refresh();
    if (use == ModelUse::training) {
      model.load(batch.tokens.data(), batch.targets.data(), T, batch.document_start);
      model.forward_backward(1, gradients, Tensor(&loss, Dtype::f64, {1}));
    }
    model.evaluate(batch.tokens.data(), batch.targets.data(), B, T, batch.document_start,
                   losses.data(), attention.data());
  }
  return allocations() - before;
}

/// A small model for every prior with every scale and with every normalizer.
std::vector<ModelConfig> every_mechanism() {
  std::vector<ModelConfig> models;
  for (const PriorConfig& p : every_prior()) {
    for (const ScaleInfo& s : all_scales()) {
      ModelConfig& c = models.emplace_back(small_config());
      c.attention.prior = p;
      c.attention.scale = scale(s.name);
      c.attention.document_mask = true;
    }
    for (const NormalizerInfo& n : all_normalizers()) {
      ModelConfig& c = models.emplace_back(small_config());
      c.attention.prior = p;
      c.attention.normalizer = normalizer(n.name);
      c.attention.document_mask = true;
    }
  }
  models.back().attention.normalizer = normalizer("entmax", {{"learned", true}});
  return models;
}

TEST_CASE("the counter sees what takes memory") {
  const int64_t before = allocations();
  const std::vector<double> one(3);
  CHECK(allocations() == before + 1);
  const std::string two(100, 'x');
  CHECK(allocations() == before + 2);
  struct alignas(64) Line {
    char bytes[64];
  };
  const std::vector<Line> three(2);
  CHECK(allocations() == before + 3);
}

TEST_CASE("passes over a model of any mechanism take no memory") {
  for (const ModelConfig& c : every_mechanism()) {
    for (const Dtype activations : {Dtype::f32, Dtype::bf16}) {
      INFO(describe(c));
      CHECK(allocations_of_later_passes(c, activations) == 0);
    }
  }
}

TEST_CASE("passes over a model of mixed layers take no memory") {
  ModelConfig c = small_config();
  c.layers = 4;
  c.attention.prior = priors({"rope_local", "cable", "fire", "bam"});
  c.attention.scale = scale("ssmax");
  c.attention.document_mask = true;
  CHECK(allocations_of_later_passes(c, Dtype::f32) == 0);
}

TEST_CASE("passes over a model of other blocks take no memory") {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam", {{"share", true}});
  c.mlp.kind = MlpKind::gelu;
  c.norm.kind = NormKind::layernorm;
  c.bias = c.tied = true;
  c.attention.window = 8;
  CHECK(allocations_of_later_passes(c, Dtype::f32) == 0);
  for (NormPosition position : {NormPosition::post, NormPosition::both}) {
    c.norm_position = position;
    c.embed_scale = true;
    c.own_head_dim = 10;
    CHECK(allocations_of_later_passes(c, Dtype::f32) == 0);
  }
}

TEST_CASE("incremental decoding takes no memory, whatever the mechanism") {
  for (const ModelConfig& c : every_mechanism()) {
    NullBackend backend;
    Model model(c, 32, backend, Dtype::f32);
    Arena arena;
    Tensor master_weights, logits;
    arena.add("masters", &master_weights, Dtype::f32, {model.parameters().elements()});
    arena.add("logits", &logits, Dtype::f32, {1, c.vocab});
    model.plan(arena, 1, 32, ModelUse::generation);
    arena.commit();
    model.set_master_weights(master_weights);
    model.refresh();
    const Batch text = random_batch(1, 32, c.vocab);
    model.begin_decoding(std::vector<int64_t>{0});
    int64_t before = 0;
    for (int64_t t = 0; t < 32; ++t) {
      if (t == 2) before = allocations();
      model.append(text.tokens.data() + t, 1, text.document_start, logits);
    }
    const int64_t taken = allocations() - before;
    INFO(describe(c));
    CHECK(taken == 0);
  }
}

}  // namespace
}  // namespace bamtrain::testing
