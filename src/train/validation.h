#pragma once
// What a validation pass gives.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/clustered_mean.h"

namespace bamtrain {

using HeadValues = std::vector<std::vector<double>>;  // (layers, heads)

/// Means over attention's rows of the first windows of a pass: see Backend::attention_statistics.
struct AttentionMeans {
  int64_t windows = 0;
  HeadValues entropy, support;
};

struct Validation {
  /// Clusters are the sequences of the pass: packed text, in which documents begin and end
  /// anywhere.
  ClusteredMean loss;
  std::optional<AttentionMeans> attention;  // where eval.attention asks for it
};

}  // namespace bamtrain
