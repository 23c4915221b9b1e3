#pragma once
// The targets that a row of a perplexity result scores: the sums of their losses by document, and a
// digest that is equal for two rows if and only if both score the same targets of the same
// documents. Differences between such rows are paired (core/paired_difference.h).

#include <cstdint>
#include <string>
#include <vector>

#include "core/clustered_mean.h"
#include "core/sha256.h"

namespace bamtrain {

class ScoredTargets {
 public:
  explicit ScoredTargets(size_t clusters) : clusters_(clusters) {}

  /// Adds the loss of token `id` at `place` of the text. Adding the same targets in the same order
  /// gives the same digest, whatever windows they come from.
  void add(size_t cluster, int64_t place, int32_t id, double loss);

  /// By document, or stretch of packed text.
  const std::vector<Cluster>& clusters() const { return clusters_; }

  /// SHA-256 of all targets: clusters, places and ids. Call once, after the last add.
  std::string digest();

 private:
  void hash_pending();

  std::vector<Cluster> clusters_;
  size_t cluster_ = SIZE_MAX;     // of the previous target
  int64_t next_ = -1;             // the place after it
  std::vector<int64_t> pending_;  // numbers to hash
  Sha256 sha256_;
};

}  // namespace bamtrain
