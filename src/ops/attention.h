#pragma once
// What attention reads, saves and returns:
//
//   s_ij = content_scale <q_i, k_j>,   z = t s + b or t (s + b),   p_i = N(z_ij : j visible),
//   out_i = sum_j p_ij v_j
//
// or, where heads are mixed, with what a network makes of all heads' s and b in place of b; with
// query head h reading key head h / (H / K). A bias b and its gradient are variants: families
// of biases exclude each other by type, a mix stands beside any. N: a normalizer; the dtypes A and
// P: see ops/ops.h.

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
/// Those of a bias are its Gradients.
using BiasGradients = EveryBias::Gradients;

/// f = w2 lrelu(w1 u + c1) + c2 over the heads of one (i, j), with slope kDapeSlope; u and what
/// becomes of f: MixForm. F: its hidden width. It reads s as it is,
/// not times t.
struct HeadMix {
  Tensor w1;  // (F, mix_inputs(form, H)) P: columns of s before those of b
  Tensor c1;  // (F) P
  Tensor w2;  // (H, F) P
  Tensor c2;  // (H) P
  MixForm form = MixForm::concat_residual;

  explicit operator bool() const { return static_cast<bool>(w1); }
  int64_t hidden() const { return w1.shape[0]; }

  /// add(name, tensor, dtype, dims) for each tensor, of H heads and hidden width F.
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

/// A factor per row.
struct RowScale {
  Tensor t;              // (B, H, T) P. Empty: t = 1
  bool on_bias = false;  // z = t (s + b) in place of t s + b
};

/// N.
struct Normalizer {
  NormalizerForm form;
  Tensor alphas;  // (H) P: entmax with a learned alpha, of each head
};

/// What attention reads. Keys and values may begin with those of past tokens, whose queries were
/// asked before: then q, and with it first_key, fire's positions, the scale and what attention
/// writes, have fewer rows than k. Row i is token past() + i. Forward passes alone take that, and
/// write of what is saved `level` at least: nothing goes back.
struct Attention {
  Tensor q;     // (B, T, H, D) A, innermost dimension contiguous
  Tensor k, v;  // (B, past + T, K, D) A, likewise
  // (B, T) i32: row i sees keys first_key[i] .. last_key[i], counted from the first row's own:
  // those of the past are negative. Non-decreasing, <= i
  Tensor first_key;
  // (B, T) i32. Non-decreasing, >= i, and rows see each other or do not, as documents and windows
  // have it. Empty: i, causal attention. Without a past; biases by distance then go from -(T - 1)
  // on
  Tensor last_key;
  Bias bias;
  HeadMix mix;  // empty: heads do not meet
  RowScale scale;
  Normalizer normalizer;
  double content_scale = 0;  // 0: 1 / sqrt(D)

  int64_t past() const { return k.shape[1] - q.shape[1]; }
  bool causal() const { return !last_key; }
  /// What <q_i, k_j> is divided by, formed in the backend's precision.
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

/// What the forward pass keeps for the backward pass, beside `out`. What the first three are of a
/// normalizer, and which of them it has, is in its header in src/normalizers/.
struct AttentionSaved {
  Tensor level = {}, threshold = {};  // (B, H, T) P
  Tensor last = {};                   // (B, H, T) i32: a key
  // (B, H, live_groups(T), live_words(T)) i32. On the general path: bit j / kLiveKeys of the words
  // of group i / kLiveRows is 0 where no row of the group gives weight to a key of the tile
  Tensor live = {};

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("level", x.level);
    f("threshold", x.threshold);
    f("last", x.last);
    f("live", x.live);
  }
};
/// Which of the above a kind has.
constexpr bool saves_level(NormalizerKind k) { return traits_of(k).level; }
constexpr bool saves_threshold(NormalizerKind k) { return traits_of(k).threshold; }
constexpr bool saves_last(NormalizerKind k) { return traits_of(k).last; }
constexpr bool saves_live(NormalizerKind k) { return !traits_of(k).fused; }

/// What the adjoint of attention returns. Rows that see a single key have dz = 0 exactly and p = 1,
/// or 0 without an own_key, where NormalizerTraits::constant_alone.
struct AttentionGradients {
  Tensor dq, dk, dv;  // shapes and strides as q, k, v
  BiasGradients bias;
  HeadMixGradients mix;  // where a mix is
  Tensor dscale;         // (B, H, T) P. Where a scale is
  Tensor dalpha;         // (B, H, T) P: of alpha, by row. Where alphas are

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
