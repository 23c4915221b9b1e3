#pragma once
// Softmax over the K largest visible logits of a row; ties go to the first keys.
//
// AttentionSaved: level is lse over the kept keys; threshold is the smallest kept logit; last is
// the last kept key with that logit, or the row's own key if all are kept.

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

/// Number of keys that a row keeps.
struct TopkKeys {
  int64_t number = 32;       // K; 0: half of n, rounded down, at least one
  bool of_sequence = false;  // n: the tokens of the sequence, not the row's visible keys

  /// For a row with `visible` keys in a sequence of T tokens.
  BAMTRAIN_HD int64_t of(int64_t visible, int64_t T) const {
    int64_t kept = number;
    if (kept == 0) kept = (of_sequence ? T : visible) / 2;
    if (kept < 1) kept = 1;
    return kept < visible ? kept : visible;
  }
};

}  // namespace bamtrain
