#pragma once
// Results of a validation pass.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/clustered_mean.h"
#include "tasks/sequence_sums.h"

namespace bamtrain {

using HeadValues = std::vector<std::vector<double>>;  // (layers, heads)

/// Attention statistics of the first windows of a pass.
struct AttentionMeans {
  int64_t windows = 0;
  HeadValues entropy, nonzero_keys;  // means over rows: see Backend::attention_statistics
  HeadValues nonzero_blocks;         // share of the visible blocks: see ops/nonzero_blocks.h
};

struct Validation {
  /// Clusters are the sequences of the pass: windows of packed text, in which documents begin and
  /// end anywhere, or sequences of a task.
  ClusteredMean loss;
  std::optional<TaskScores> scores;         // for a task
  std::optional<AttentionMeans> attention;  // if eval.attention asks for it
};

}  // namespace bamtrain
