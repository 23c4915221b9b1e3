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
  require(shape.past == 0, "a backward pass over all rows");
  AttentionShape own = shape;
  own.content_columns = f.content_columns;
  const int64_t B = own.B, T = own.T, H = own.H;
  Attention& a = call.a;
  a.form = f;
  AttentionGradients& g = call.g;
  add("out", &call.out, A, {B, T, H, own.D});
  add("dout", &call.dout, A, {B, T, H, own.D});
  add("first_key", &a.first_key, Dtype::i32, {B, T});
  if (!own.causal) add("last_key", &a.last_key, Dtype::i32, {B, T});
  call.saved.plan(f.normalizer.kind, B, H, T, P, add);
  if (f.normalizer.learned) {
    add("alphas", &a.alphas, P, {H});
    add("dalpha", &g.dalpha, P, {B, H, T});
  }
  if (f.scale) {
    add("scale", &a.scale, P, {B, H, T});
    add("dscale", &g.dscale, P, {B, H, T});
  }
  a.bias = bias_of(f.bias);
  std::visit(
      [&]<class B>(B& bias) {
        bias.plan(own, P, add);
        g.bias.template emplace<typename B::Gradients>().plan(own, P, add);
      },
      a.bias);
  if (!f.mix) return;
  a.mix.plan(*f.mix, H, f.mix_hidden, P, add);
  g.mix.plan(*f.mix, H, f.mix_hidden, P, add);
}

}  // namespace bamtrain
