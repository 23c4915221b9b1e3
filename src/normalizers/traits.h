#pragma once
// What the rest of the program asks of a normalizer, on host and device.

#include "core/host_device.h"

namespace bamtrain {

struct NormalizerTraits {
  // Which numbers of AttentionSaved (ops/attention.h) the forward pass keeps of a row. Where the
  // level is alone, weights are exp(z - level).
  bool level = true, threshold = false, last = false;
  // The weights of a row sum to 1. Where they do not, what reads them takes them as they are.
  bool sums_to_one = true;
  bool own_key = true;  // a row's own key may have weight
  // Every key but an own_key that may not has weight, however little.
  bool dense = true;
  bool takes_scale = true;   // goes with a logit scale
  bool causal_only = false;  // keys behind the query have no weight by its formula
  // Every backend has fused paths for it. Without them it takes the general path, which saves
  // what of its tiles is live.
  bool fused = false;

  /// Whether weights are exp(z - level), and so dz = p (dP - D) with D = <dO, out>.
  BAMTRAIN_HD constexpr bool of_level() const { return level && !threshold; }
  /// Whether the weight of the only key that a row sees does not depend on its logit.
  BAMTRAIN_HD constexpr bool constant_alone() const { return sums_to_one || !own_key; }
};

}  // namespace bamtrain
