#include "train/optimizer.h"

#include <cmath>

#include "catch.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/scale.h"

using namespace bamtrain;

namespace {

ModelConfig tiny_bam() {
  ModelConfig c;
  c.vocab = 11;
  c.width = 8;
  c.layers = 1;
  c.heads = c.kv_heads = 2;
  c.mlp.hidden = 8;
  c.bias = true;
  c.attention.prior = {"bam", default_options(find_prior("bam")->options)};
  c.attention.scale = {"ssmax", default_options(find_scale("ssmax")->options)};
  return c;
}

/// One step with gradients 0 moves exactly what decays; with gradients 1 (AdamW's first step has
/// size lr) everything trained by its own rate.
struct Fixture {
  ModelConfig config = tiny_bam();
  ParameterLayout layout{config, 16};
  std::unique_ptr<Backend> backend = make_reference_backend();
  Arena arena;
  Tensor masters, gradients;

  void step(OptimizerConfig o, double gradient) {
    Optimizer optimizer(o, layout, *backend);
    arena.add("masters", &masters, Dtype::f64, {layout.elements()});
    arena.add("gradients", &gradients, Dtype::f64, {layout.elements()});
    optimizer.plan(arena);
    arena.commit();
    for (int64_t i = 0; i < masters.size(); ++i) masters.ptr<double>()[i] = 1;
    for (int64_t i = 0; i < gradients.size(); ++i) gradients.ptr<double>()[i] = gradient;
    optimizer.step(1, o.lr, 1, masters, {}, gradients);
  }
  double value(const std::string& name) const {
    return layout.view(masters, name).ptr<double>()[0];
  }
};

}  // namespace

TEST_CASE("matrices and embeddings decay; norms, biases, priors and scales do not") {
  Fixture f;
  OptimizerConfig o;
  o.lr = 0.5;
  o.weight_decay = 0.1;
  f.step(o, 0);
  CHECK(f.value("model.embed_tokens.weight") == Approx(0.95));
  CHECK(f.value("lm_head.weight") == Approx(0.95));
  CHECK(f.value("model.layers.0.self_attn.q_proj.weight") == Approx(0.95));
  CHECK(f.value("model.layers.0.self_attn.q_proj.bias") == 1);
  CHECK(f.value("model.norm.weight") == 1);
  CHECK(f.value("model.layers.0.self_attn.prior.theta_alpha") == 1);
  CHECK(f.value("model.layers.0.self_attn.scale.s") == 1);
}

TEST_CASE("learning-rate multipliers: the name wins over the group, fixed parameters never move") {
  Fixture f;
  OptimizerConfig o;
  o.lr = 0.01;
  o.eps = 0;
  o.weight_decay = 0;
  o.lr_multipliers = {{"prior", 2}, {"theta_beta", 3}, {"s", 5}};
  f.step(o, 1);
  CHECK(f.value("model.norm.weight") == Approx(0.99));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_alpha") == Approx(0.98));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_beta") == Approx(0.97));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_mu") == 1);
  CHECK(f.value("model.layers.0.self_attn.scale.s") == Approx(0.95));
}

TEST_CASE("a multiplier for nothing in the model is an error that names it") {
  Fixture f;
  OptimizerConfig o;
  o.lr_multipliers = {{"theta_gamma", 2}};
  REQUIRE_THROWS_AS(Optimizer(o, f.layout, *f.backend), Error);
}

TEST_CASE("the clipping factor brings a larger norm to the limit and leaves a smaller one") {
  Fixture f;
  OptimizerConfig o;
  o.clip = 2;
  const Optimizer optimizer(o, f.layout, *f.backend);
  CHECK(optimizer.clip_factor(1) == 1);
  CHECK(optimizer.clip_factor(8) == Approx(0.25));
  o.clip = 0;
  CHECK(Optimizer(o, f.layout, *f.backend).clip_factor(8) == 1);
}
