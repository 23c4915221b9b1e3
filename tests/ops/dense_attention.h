#pragma once
// Attention by its definition, one logit at a time, from an operation's inputs alone.

#include <vector>

#include "attention_case.h"

namespace bamtrain::testing {

/// The scores and the bias of one row's visible keys, first to last, before a mix of heads.
struct DenseRow {
  int64_t first;
  std::vector<double> s, b;

  /// Row i of sequence `b` and head `h`, which sees keys `first` to `last`.
  DenseRow(const AttentionCase& c, const Arrays& in, int64_t b, int64_t h, int64_t i, int64_t first,
           int64_t last);
  /// z = t s + b or t (s + b).
  std::vector<double> logits(const AttentionCase& c, double t) const;
};

/// softmax of a row's logits.
struct DenseSoftmax {
  double lse, entropy = 0;
  std::vector<double> p;

  explicit DenseSoftmax(const std::vector<double>& z);
};

/// Results of all rows without a mix, under softmax: out, lse, and the entropy.
Arrays dense_attention(const AttentionCase& c, const Arrays& in);

}  // namespace bamtrain::testing
