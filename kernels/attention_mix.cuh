#pragma once
// What the kernels of a mix of heads share.

#include "attention_bias.cuh"
#include "attention_content.h"

namespace bamtrain::kernels {

/// Where in a slot the gradients are: dw1, dc1, dw2, dc2 one after another.
struct MixElements {
  int inputs;  // columns of w1
  int c1, w2, c2, count;

  template <class A>
  BAMTRAIN_BOTH explicit MixElements(const AttentionInputs<A>& a)
      : inputs(static_cast<int>(mix_inputs(a.mix.form, a.H))),
        c1(a.mix.hidden * inputs),
        w2(c1 + a.mix.hidden),
        c2(w2 + a.H * a.mix.hidden),
        count(c2 + a.H) {}
};

/// A query of the part, the n-th of sequence b, in an array of AttentionInputs::formed: of head h
/// and key j it has h * head + j, from `row` on.
struct MixQuery {
  int b, i, first;
  int64_t row, head;

  template <class A>
  BAMTRAIN_DEVICE MixQuery(const AttentionInputs<A>& a, int sequence, int n)
      : b(sequence),
        i(a.formed.first + n),
        first(a.first_key[static_cast<int64_t>(sequence) * a.T + i]),
        row(a.formed.row(static_cast<int64_t>(sequence) * a.H, i)),
        head(a.formed.rows * a.formed.stride) {}

  BAMTRAIN_DEVICE bool sees(int j) const { return j >= first && j <= i; }
  /// t, and u: the factors of the scores and biases of head h in its logits.
  template <class A>
  BAMTRAIN_DEVICE float of_scores(const AttentionInputs<A>& a, int h) const {
    return a.scale != nullptr ? a.scale[(static_cast<int64_t>(b) * a.H + h) * a.T + i] : 1.0f;
  }
  template <class A>
  BAMTRAIN_DEVICE float of_biases(const AttentionInputs<A>& a, int h) const {
    return a.scale_bias ? of_scores(a, h) : 1.0f;
  }
};

}  // namespace bamtrain::kernels
