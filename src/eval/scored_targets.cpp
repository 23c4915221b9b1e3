#include "eval/scored_targets.h"

namespace bamtrain {

void ScoredTargets::add(size_t cluster, int64_t place, int32_t id, double loss) {
  constexpr size_t kMostPending = 4096;
  constexpr int64_t kNewRange = -1;  // not an id
  clusters_[cluster].add(loss);
  if (cluster != cluster_ || place != next_) {
    pending_.insert(pending_.end(), {kNewRange, static_cast<int64_t>(cluster), place});
  }
  pending_.push_back(id);
  cluster_ = cluster;
  next_ = place + 1;
  if (pending_.size() >= kMostPending) hash_pending();
}

std::string ScoredTargets::digest() {
  hash_pending();
  return sha256_.hex();
}

void ScoredTargets::hash_pending() {
  sha256_.update(pending_.data(), pending_.size() * sizeof(int64_t));
  pending_.clear();
}

}  // namespace bamtrain
