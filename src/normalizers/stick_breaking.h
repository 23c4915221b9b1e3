#pragma once
// Stick-breaking (Tan et al. 2024): from the row's own key to the left, every key takes a share of
// the remaining weight, and the rest is dropped,
//
//   p_ij = sigmoid(z_ij) prod_{j < k < i} (1 - sigmoid(z_ik)),   j < i.
//
// The row's own key has no weight. So the first row of a document has no weights, and its output is
// 0. Unlike with softmax, a bias that is constant over a row matters. AttentionSaved keeps nothing.

#include "normalizers/traits.h"

namespace bamtrain {

struct NormalizerInfo;

struct StickBreaking {
  BAMTRAIN_HD static constexpr NormalizerTraits traits() {
    return {.level = false,
            .sums_to_one = false,
            .own_key = false,
            .takes_scale = false,
            .causal_only = true};
  }
  static NormalizerInfo info();
};

}  // namespace bamtrain
