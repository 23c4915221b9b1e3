// Activation checkpointing: what the backward pass recomputes is bitwise identical with the
// original.

#include "catch.h"
#include "model/build.h"
#include "ops/cpu/cpu.h"
#include "ops/reference/reference.h"

namespace bamtrain::testing {
namespace {

Device device_for(Dtype t) {
  return {t == Dtype::f64 ? make_reference_backend() : make_cpu_backend(), &host_memory()};
}

TEST_CASE("recomputed activations change no bit of loss and gradients") {
  for (const auto& [prior_name, scale_name] :
       {std::pair{"bam", "ssmax"}, std::pair{"rope", "none"}, std::pair{"learned", "none"},
        std::pair{"cable", "adaptive"}, std::pair{"transformer_xl", "none"},
        std::pair{"cope", "none"}, std::pair{"dape over kerple", "none"}}) {
    for (NormPosition position : {NormPosition::pre, NormPosition::post, NormPosition::both}) {
      ModelConfig c = small_config();
      c.layers = 3;
      c.norm_position = position;
      c.embed_scale = position != NormPosition::pre;
      c.own_head_dim = position == NormPosition::both ? 8 : 0;
      c.attention.prior = priors({prior_name});
      c.attention.scale = scale(scale_name);
      c.attention.document_mask = true;
      if (prior_name == std::string("learned")) {
        c.mlp.kind = MlpKind::gelu;
        c.norm.kind = NormKind::layernorm;
        c.bias = true;
      }
      const Batch batch = random_batch(2, 40, c.vocab);
      for (Dtype t : with_products({Dtype::f64, Dtype::f32, Dtype::bf16})) {
        Run all(c, t, 2, 40, device_for(t));
        const double loss = all.differentiate(batch);
        const std::vector<double> gradients = read(all.gradients(), Role::parameter).x;
        int64_t bytes = all.planned_bytes();
        for (const Recompute r : {Recompute::mlp, Recompute::block}) {
          INFO(describe(c) << " " << name_of(t) << (r == Recompute::mlp ? " mlp" : " block"));
          Run run(c, t, 2, 40, device_for(t), r);
          CHECK(run.planned_bytes() < bytes);
          bytes = run.planned_bytes();
          for (int pass = 0; pass < 2; ++pass) {
            CHECK(run.differentiate(batch) == loss);
            check_equal(read(run.gradients(), Role::parameter).x, gradients);
          }
        }
      }
    }
  }
}

TEST_CASE("a layer whose mlp is computed again keeps 3 F / C times (N, C) less") {
  ModelConfig c = small_config();
  c.layers = 5;
  const int64_t B = 4, T = 64;
  const Run all(c, Dtype::f32, B, T, device_for(Dtype::f32));
  const Run mlp(c, Dtype::f32, B, T, device_for(Dtype::f32), Recompute::mlp);
  const Run block(c, Dtype::f32, B, T, device_for(Dtype::f32), Recompute::block);
  // One layer's memory remains, shared by all layers.
  const int64_t hidden = 4 * B * T * 3 * c.mlp.hidden;
  CHECK(all.planned_bytes() - mlp.planned_bytes() == 4 * hidden);
  const int64_t C = c.width, D = c.head_dim();
  const int64_t attention = 4 * B * T * (4 * C + (c.heads + 2 * c.kv_heads) * D + c.heads + 2 * 2);
  CHECK(mlp.planned_bytes() - block.planned_bytes() == 4 * attention);
}

}  // namespace
}  // namespace bamtrain::testing
