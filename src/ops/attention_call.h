#pragma once
// One call of attention and of its adjoint, with every tensor that its form requires; used by
// benchmarks and tests.

#include <cstdint>
#include <variant>

#include "ops/attention.h"
#include "ops/attention_form.h"

namespace bamtrain {

struct AttentionCall {
  Attention a;
  Tensor out, dout;  // (B, T, H, D) A
  AttentionSaved saved;
  AttentionGradients g;
};

/// Sets the form of `call`, and calls add(name, tensor, dtype, dims) for each of its tensors except
/// q, k, v and their gradients, which the caller may place in one tensor. `add` sets *tensor, now
/// or later; until then `call` must not move.
template <class Add>
void form_call(AttentionCall& call, const AttentionForm& f, const AttentionShape& shape, Dtype A,
               Dtype P, Add&& add) {
  const auto [B, T, H, K, D, past, positions, causal] = shape;
  require(past == 0, "a backward pass over all rows");
  Attention& a = call.a;
  AttentionGradients& g = call.g;
  add("out", &call.out, A, {B, T, H, D});
  add("dout", &call.dout, A, {B, T, H, D});
  add("first_key", &a.first_key, Dtype::i32, {B, T});
  if (!causal) add("last_key", &a.last_key, Dtype::i32, {B, T});
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
  a.bias = bias_of(f.bias);
  std::visit(
      [&]<class B>(B& bias) {
        bias.plan(shape, P, add);
        g.bias.template emplace<typename B::Gradients>().plan(shape, P, add);
      },
      a.bias);
  if (!f.mix) return;
  a.mix.form = *f.mix;
  a.mix.plan(H, f.mix_hidden, P, add);
  g.mix.plan(*f.mix, H, f.mix_hidden, P, add);
}

}  // namespace bamtrain
