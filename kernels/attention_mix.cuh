#pragma once
// What the kernels of a mix of heads share.

#include "attention_bias.cuh"
#include "attention_content.h"

namespace bamtrain::kernels {

/// The hidden layer is W1 s + W1' B + c1 in every form: W1 (k, h), and of biases W1'.
BAMTRAIN_DEVICE float first_weight(const MixInputs& m, int H, int k, bool of_biases, int h) {
  switch (m.form) {
    case MixForm::concat:
    case MixForm::concat_residual:
      return m.w1[2 * k * H + (of_biases ? H : 0) + h];
    case MixForm::add_residual:
      return m.w1[k * H + h];
    case MixForm::bias_only:
      break;
  }
  return of_biases ? m.w1[k * H + h] : 0.0f;
}

/// Where in a slot the gradients are: of W1 and W1' as in the w1 of concat, of c1, w2 and c2, one
/// after another.
struct MixElements {
  int inputs;
  int c1, w2, c2, count;

  template <class A>
  BAMTRAIN_BOTH explicit MixElements(const AttentionInputs<A>& a)
      : inputs(2 * a.H),
        c1(a.mix.hidden * inputs),
        w2(c1 + a.mix.hidden),
        c2(w2 + a.H * a.mix.hidden),
        count(c2 + a.H) {}
};

/// A query of the part, the n-th of sequence b, in an array of AttentionInputs::formed: of head h
/// and key j it has h * head + j, from `row` on.
struct MixQuery {
  int b, i, first, last;
  int64_t row, head;

  template <class A>
  BAMTRAIN_DEVICE MixQuery(const AttentionInputs<A>& a, int sequence, int n)
      : b(sequence),
        i(a.formed.first + n),
        first(a.first_key[static_cast<int64_t>(sequence) * a.T + i]),
        last(a.causal ? i : a.last_key[static_cast<int64_t>(sequence) * a.T + i]),
        row(a.formed.row(static_cast<int64_t>(sequence) * a.H, i)),
        head(a.formed.rows * a.formed.stride) {}

  BAMTRAIN_DEVICE bool sees(int j) const { return j >= first && j <= last; }
  /// t, and u: the factors of the scores and biases of head h in its logits.
  template <class A>
  BAMTRAIN_DEVICE float of_scores(const AttentionInputs<A>& a, int h) const {
    return a.scale != nullptr ? a.scale[(static_cast<int64_t>(b) * a.H + h) * a.T + i] : 1.0f;
  }
  template <class A>
  BAMTRAIN_DEVICE float of_biases(const AttentionInputs<A>& a, int h) const {
    return a.scale_bias ? of_scores(a, h) : 1.0f;
  }
  /// What dz of head h and key j gives up: the sum of a row's dz, by weight. The network's
  /// gradients are sums over rows, which would keep it.
  template <class A>
  BAMTRAIN_DEVICE float rest(const ContentGradients<A>& g, int h, int j) const {
    if (g.rest_of_dz == nullptr) return 0.0f;
    return g.in.formed.p[row + h * head + j] *
           g.rest_of_dz[(static_cast<int64_t>(b) * g.in.H + h) * g.in.T + i];
  }
};

}  // namespace bamtrain::kernels
