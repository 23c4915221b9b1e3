#pragma once
// Stick-breaking (Tan et al. 2024): from the row's own key to the left every key takes a share of
// what is left, and the rest is dropped,
//
//   p_ij = sigmoid(z_ij) prod_{j < k < i} (1 - sigmoid(z_ik)),   j < i.
//
// The row's own key has no weight: a document's first row has none at all, and its output is 0.
// Other than with softmax, what a prior adds to a whole row matters. Nothing is saved of a row.

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
