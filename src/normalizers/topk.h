#pragma once
// Softmax over the K largest of a row's visible logits; of equal ones the keys that come first.
//
// level: log of the sum of exp(z) of the keys that are kept. threshold: the smallest logit that is
// kept. last: of the keys with that logit the last one kept, or the row's own where all are.

#include <cstdint>

#include "normalizers/traits.h"

namespace bamtrain {

struct NormalizerInfo;

struct Topk {
  BAMTRAIN_HD static constexpr NormalizerTraits traits() {
    return {.threshold = true, .last = true, .dense = false};
  }
  static NormalizerInfo info();
};

/// How many keys a row keeps.
struct TopkKeys {
  int64_t number = 32;       // K; 0: half of n, rounded down, at least one
  bool of_sequence = false;  // n: the tokens of the sequence, not the row's visible keys

  /// Of a row with `visible` keys in a sequence of T tokens.
  BAMTRAIN_HD int64_t of(int64_t visible, int64_t T) const {
    int64_t kept = number;
    if (kept == 0) kept = (of_sequence ? T : visible) / 2;
    if (kept < 1) kept = 1;
    return kept < visible ? kept : visible;
  }
};

}  // namespace bamtrain
