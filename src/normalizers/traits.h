#pragma once
// What other code needs to know of a normalizer, on host and device.

#include "core/host_device.h"

namespace bamtrain {

struct NormalizerTraits {
  // The fields of AttentionSaved (ops/attention.h) that the forward pass keeps per row. If only
  // level is kept, weights are exp(z - level).
  bool level = true, threshold = false, last = false;
  // The weights of a row sum to 1. If they do not, readers use them without renormalizing.
  bool sums_to_one = true;
  bool own_key = true;  // a row's own key may have weight
  // Every visible key has nonzero weight, except a row's own key without own_key.
  bool dense = true;
  bool takes_scale = true;   // goes with a logit scale
  bool causal_only = false;  // keys after the query have no weight by its formula
  // Every backend has fused paths for it. Without them it uses the general path, which saves the
  // mask of nonzero blocks.
  bool fused = false;

  /// Whether weights are exp(z - level), which gives dz = p (dP - D) with D = <dO, out>.
  BAMTRAIN_HD constexpr bool of_level() const { return level && !threshold; }
  /// Whether a row's only visible key has a weight that does not depend on its logit.
  BAMTRAIN_HD constexpr bool constant_alone() const { return sums_to_one || !own_key; }
};

}  // namespace bamtrain
