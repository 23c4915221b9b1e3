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
#include "ops/mechanisms/all.h"
#include "ops/tensors.h"

namespace bamtrain {

using Bias = EveryBias::Any;
/// The gradients of a bias are its Gradients.
using BiasGradients = EveryBias::Gradients;

/// f = w2 lrelu(w1 u + c1) + c2 over the heads of one (i, j), with slope kDapeSlope. MixForm
/// defines u and how f is used. F: the hidden width. The network reads s without the factor t.
struct HeadMix {
  Tensor w1;  // (F, mix_inputs(form, H)) P: columns of s before those of b
  Tensor c1;  // (F) P
  Tensor w2;  // (H, F) P
  Tensor c2;  // (H) P
  MixForm form = MixForm::concat_residual;

  explicit operator bool() const { return static_cast<bool>(w1); }
  int64_t hidden() const { return w1.shape[0]; }

  /// Calls add(name, tensor, dtype, dims) for each tensor, for H heads and hidden width F.
  template <class Add>
  void plan(int64_t H, int64_t F, Dtype P, Add&& add) {
    add("w1", &w1, P, {F, mix_inputs(form, H)});
    add("c1", &c1, P, {F});
    add("w2", &w2, P, {H, F});
    add("c2", &c2, P, {H});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  template <class X, class F>
  static void each(X& x, F&& f) {
    f("w1", x.w1);
    f("c1", x.c1);
    f("w2", x.w2);
    f("c2", x.c2);
  }
};
struct HeadMixGradients {
  Tensor dw1, dc1, dw2, dc2;  // as HeadMix, P

  template <class Add>
  void plan(MixForm form, int64_t H, int64_t F, Dtype P, Add&& add) {
    add("dw1", &dw1, P, {F, mix_inputs(form, H)});
    add("dc1", &dc1, P, {F});
    add("dw2", &dw2, P, {H, F});
    add("dc2", &dc2, P, {H});
  }
  void on_cuda(kernels::BiasOutputs& out) const;
  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dw1", x.dw1);
    f("dc1", x.dc1);
    f("dw2", x.dw2);
    f("dc2", x.dc2);
  }
};

/// A factor per row: the logit scale.
struct RowScale {
  Tensor t;              // (B, H, T) P. Empty: t = 1
  bool on_bias = false;  // z = t (s + b) instead of t s + b
};

/// N: the normalizer.
struct Normalizer {
  NormalizerForm form;
  Tensor alphas;  // (H) P: a learned alpha of entmax per head
};

/// What attention reads. In incremental decoding k and v start with the keys and values of past()
/// earlier tokens. Then q, first_key, fire's positions, the scale and everything that attention
/// writes have fewer rows than k. Row i is token past() + i. Only forward passes accept a past; no
/// backward pass follows, so of AttentionSaved they need to write only `level`.
struct Attention {
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
  HeadMix mix;  // empty: no mix of heads
  RowScale scale;
  Normalizer normalizer;
  double content_scale = 0;  // 0: 1 / sqrt(D)

  int64_t past() const { return k.shape[1] - q.shape[1]; }
  bool causal() const { return !last_key; }
  /// The divisor of <q_i, k_j>, computed in the backend's precision.
  template <class Real>
  Real content_divisor() const {
    return content_scale != 0 ? static_cast<Real>(1 / content_scale)
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
    f("scale", x.scale.t);
    f("alphas", x.normalizer.alphas);
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

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("level", x.level);
    f("threshold", x.threshold);
    f("last", x.last);
    f("live", x.live);
  }
};
/// Which of these tensors a kind of normalizer saves.
constexpr bool saves_level(NormalizerKind k) { return traits_of(k).level; }
constexpr bool saves_threshold(NormalizerKind k) { return traits_of(k).threshold; }
constexpr bool saves_last(NormalizerKind k) { return traits_of(k).last; }
constexpr bool saves_live(NormalizerKind k) { return !traits_of(k).fused; }

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
