#pragma once
// Inputs, saved values and gradients of attention:
//
//   s_ij = content_scale <q_i, k_j>,   z = t s + b or t (s + b),   p_i = N(z_ij : j visible),
//   out_i = sum_j p_ij v_j
//
// Query head h reads key head h / (H / K). With a mix of heads, a network of all heads' s and b
// replaces b. A bias and its gradients are variants: bias families exclude each other by type, a
// mix combines with any that reads no queries and keys. N: a normalizer. Dtypes A and P: see
// ops/ops.h.

#include <cmath>
#include <cstdint>
#include <variant>

#include "core/tensor.h"
#include "mixes/mix.h"
#include "normalizers/live_tiles.h"
#include "normalizers/normalizer.h"
#include "ops/attention_form.h"
#include "ops/mechanisms/all.h"
#include "ops/tensors.h"

namespace bamtrain {

using Bias = EveryBias::Any;
/// The gradients of a bias are its Gradients.
using BiasGradients = EveryBias::Gradients;

/// The tensors of a mix of heads, or their gradients, by the same names. F: the hidden width.
template <bool kGradients>
struct MixTensors {
  Tensor w1;  // (F, mix_inputs(form, H)) P: columns of s before those of b
  Tensor c1;  // (F) P
  Tensor w2;  // (H, F) P
  Tensor c2;  // (H) P

  /// Calls add(name, tensor, dtype, dims) for each tensor.
  template <class Add>
  void plan(MixForm form, int64_t H, int64_t F, Dtype P, Add&& add) {
    add(kGradients ? "dw1" : "w1", &w1, P, {F, mix_inputs(form, H)});
    add(kGradients ? "dc1" : "c1", &c1, P, {F});
    add(kGradients ? "dw2" : "w2", &w2, P, {H, F});
    add(kGradients ? "dc2" : "c2", &c2, P, {H});
  }
  template <class X, class F>
  static void each(X& x, F&& f) {
    f(kGradients ? "dw1" : "w1", x.w1);
    f(kGradients ? "dc1" : "c1", x.c1);
    f(kGradients ? "dw2" : "w2", x.w2);
    f(kGradients ? "dc2" : "c2", x.c2);
  }
};
/// f = w2 lrelu(w1 u + c1) + c2 over the heads of one (i, j), with slope kDapeSlope. MixForm
/// defines u and how f is used. The network reads s without the factor t.
struct HeadMix : MixTensors<false> {
  explicit operator bool() const { return static_cast<bool>(w1); }
  int64_t hidden() const { return w1.shape[0]; }
  void on_cuda(kernels::BiasInputs& in, MixForm form) const;
};
struct HeadMixGradients : MixTensors<true> {
  void on_cuda(kernels::BiasOutputs& out) const;
};

/// What attention reads. In incremental decoding k and v start with the keys and values of past()
/// earlier tokens. Then q, first_key, fire's positions, the scale and everything that attention
/// writes have fewer rows than k. Row i is token past() + i. Only forward passes accept a past; no
/// backward pass follows, so of AttentionSaved they need to write only `level`.
struct Attention {
  // Calls read normalizer, content_scale, and with a scale or a mix scale_bias or mix. The tensors
  // determine the rest.
  AttentionForm form;
  Tensor q;     // (B, T, H, D) A, innermost dimension contiguous
  Tensor k, v;  // (B, past + T, K, D) A, likewise
  // (B, T) i32: row i sees keys first_key[i] .. last_key[i], counted from the first row's own key,
  // so keys of the past are negative. Non-decreasing, <= i
  Tensor first_key;
  // (B, T) i32. Non-decreasing, >= i. Visibility is symmetric: two rows see each other or neither
  // does, as with documents and windows. Empty: causal attention, last_key[i] = i. If set, there is
  // no past, and biases by distance start at -(T - 1)
  Tensor last_key;
  Bias bias;
  HeadMix mix;    // empty: no mix of heads
  Tensor scale;   // (B, H, T) P: t, the logit scale. Empty: t = 1
  Tensor alphas;  // (H) P: a learned alpha of entmax per head

  int64_t past() const { return k.shape[1] - q.shape[1]; }
  bool causal() const { return !last_key; }
  /// The divisor of <q_i, k_j>, computed in the backend's precision.
  template <class Real>
  Real content_divisor() const {
    return form.content_scale != 0 ? static_cast<Real>(1 / form.content_scale)
                                   : std::sqrt(static_cast<Real>(q.shape[3]));
  }

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("q", x.q);
    f("k", x.k);
    f("v", x.v);
    f("first_key", x.first_key);
    f("last_key", x.last_key);
    std::visit([&f](auto& bias) { for_tensors(bias, f); }, x.bias);
    for_tensors(x.mix, f);
    f("scale", x.scale);
    f("alphas", x.alphas);
  }
};

/// What the forward pass saves for the backward pass, besides `out`. src/normalizers/NAME.h says
/// which of the first three a normalizer has, and what they hold.
struct AttentionSaved {
  Tensor level = {}, threshold = {};  // (B, H, T) P
  Tensor last = {};                   // (B, H, T) i32: a key
  // (B, H, live_groups(T), live_words(T)) i32, on the general path: a block mask. Bit j / kLiveKeys
  // of the words of group i / kLiveRows is 0 if no row of the group gives weight to a key of the
  // block
  Tensor live = {};

  /// Calls add(name, tensor, dtype, dims) for each tensor that a kind of normalizer has.
  template <class Add>
  void plan(NormalizerKind kind, int64_t B, int64_t H, int64_t T, Dtype P, Add&& add) {
    const NormalizerTraits traits = traits_of(kind);
    if (traits.level) add("level", &level, P, {B, H, T});
    if (traits.threshold) add("threshold", &threshold, P, {B, H, T});
    if (traits.last) add("last", &last, Dtype::i32, {B, H, T});
    if (!traits.fused) add("live", &live, Dtype::i32, {B, H, live_groups(T), live_words(T)});
  }
  template <class X, class F>
  static void each(X& x, F&& f) {
    f("level", x.level);
    f("threshold", x.threshold);
    f("last", x.last);
    f("live", x.live);
  }
};

/// What the adjoint of attention returns. A row that sees a single key has dz = 0 exactly and
/// p = 1, or p = 0 without an own_key, if NormalizerTraits::constant_alone.
struct AttentionGradients {
  Tensor dq, dk, dv;  // shapes and strides of q, k, v
  BiasGradients bias;
  HeadMixGradients mix;  // if there is a mix
  Tensor dscale;         // (B, H, T) P, if there is a scale
  Tensor dalpha;         // (B, H, T) P: with respect to alpha, by row, if there are alphas

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dq", x.dq);
    f("dk", x.dk);
    f("dv", x.dv);
    std::visit([&f](auto& bias) { for_tensors(bias, f); }, x.bias);
    for_tensors(x.mix, f);
    f("dscale", x.dscale);
    f("dalpha", x.dalpha);
  }
};

}  // namespace bamtrain
