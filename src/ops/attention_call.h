#pragma once
// One call of attention and of its adjoint with every tensor that its form asks for: what
// benchmarks and tests compute with.

#include <cstdint>

#include "ops/attention.h"
#include "priors/fire.h"

namespace bamtrain {

enum class BiasForm { none, table, difference, log_square, fire };

struct AttentionForm {
  BiasForm bias = BiasForm::none;
  bool scale = false, scale_bias = false;
  double content_scale = 0;
  NormalizerForm normalizer = {};
  bool general_path = false;  // WorkspaceShape::general_attention, with softmax too
};

struct AttentionShape {
  int64_t B = 1, T = 1, H = 1, K = 1, D = 1;
};

struct AttentionCall {
  Attention a;
  Tensor out, dout;  // (B, T, H, D) A
  AttentionSaved saved;
  AttentionGradients g;
};

/// Gives `call` its form, and calls add(name, tensor, dtype, dims) for each of its tensors but q,
/// k, v and their gradients, which may lie in one. `add` sets *tensor, now or later; the call keeps
/// its place until then.
template <class Add>
void form_call(AttentionCall& call, const AttentionForm& f, const AttentionShape& shape, Dtype A,
               Dtype P, Add&& add) {
  const auto [B, T, H, K, D] = shape;
  Attention& a = call.a;
  AttentionGradients& g = call.g;
  add("out", &call.out, A, {B, T, H, D});
  add("dout", &call.dout, A, {B, T, H, D});
  add("first_key", &a.first_key, Dtype::i32, {B, T});
  const NormalizerKind kind = f.normalizer.kind;
  a.normalizer.form = f.normalizer;
  if (saves_level(kind)) add("level", &call.saved.level, P, {B, H, T});
  if (saves_threshold(kind)) add("threshold", &call.saved.threshold, P, {B, H, T});
  if (saves_last(kind)) add("last", &call.saved.last, Dtype::i32, {B, H, T});
  if (saves_live(kind)) {
    add("live", &call.saved.live, Dtype::i32, {B, H, live_groups(T), live_words(T)});
  }
  if (f.normalizer.learned) {
    add("alphas", &a.normalizer.alphas, P, {H});
    add("dalpha", &g.dalpha, P, {B, H, T});
  }
  a.content_scale = f.content_scale;
  a.scale.on_bias = f.scale_bias;
  if (f.scale) {
    add("scale", &a.scale.t, P, {B, H, T});
    add("dscale", &g.dscale, P, {B, H, T});
  }
  switch (f.bias) {
    case BiasForm::none:
      return;
    case BiasForm::table: {
      add("table", &a.bias.emplace<TableBias>().table, P, {H, T});
      return add("dtable", &g.bias.emplace<TableBiasGradients>().dtable, P, {H, T});
    }
    case BiasForm::difference:
    case BiasForm::log_square: {
      auto& bias = a.bias.emplace<SumsBias>();
      bias.form = f.bias == BiasForm::difference ? SumBias::difference : SumBias::log_square;
      add("sums", &bias.sums, Dtype::f64, {B, H, T});
      return add("dsums", &g.bias.emplace<SumsBiasGradients>().dsums, P, {B, H, T});
    }
    case BiasForm::fire: {
      auto& bias = a.bias.emplace<FireBias>();
      add("psi", &bias.tables.psi, P, {T});
      add("psi_dc", &bias.tables.psi_dc, P, {T});
      add("inverse", &bias.tables.inverse, P, {T});
      add("ends", &bias.tables.ends, Dtype::i32, {T, kFireHidden});
      add("slope", &bias.tables.slope, P, {H, kFireSegments});
      add("offset", &bias.tables.offset, P, {H, kFireSegments});
      add("positions", &bias.positions, Dtype::i32, {B, T});
      auto& of_bias = g.bias.emplace<FireBiasGradients>();
      add("dfire", &of_bias.dfire, Dtype::f64, {H, kFireSegments, 2});
      add("dfire_u", &of_bias.dfire_u, P, {B, H, T});
      return add("dfire_psi", &of_bias.dfire_psi, P, {B, H, T});
    }
  }
}

}  // namespace bamtrain
