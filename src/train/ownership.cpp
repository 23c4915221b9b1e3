#include "train/ownership.h"

#include <algorithm>

namespace bamtrain {

Ownership::Ownership(const Network& model, const GroupReduction& reduction, bool divided,
                     MasterWeights kept)
    : divided_(divided), keeps_all_(!divided || kept == MasterWeights::all) {
  const int64_t all = model.parameters().elements(), exact = model.parameters().exact_elements();
  for (int part = 0; part <= model.parts() / 2; ++part) {
    of_parts_.push_back(model.ranges_of(part));
    segments_.insert(segments_.end(), of_parts_.back().begin(), of_parts_.back().end());
  }
  std::sort(segments_.begin(), segments_.end(),
            [](const FlatRange& a, const FlatRange& b) { return a.begin < b.begin; });
  master_weights_ = keeps_all_ ? all : exact;
  for (const FlatRange& segment : segments_) {
    OwnedRange& own = owned_.emplace_back(OwnedRange{segment});
    if (divided) {
      const FlatRange within = reduction.own_range(segment.size());
      own.elements = {segment.begin + within.begin, segment.begin + within.end};
    }
    const bool in_place = keeps_all_ || segment.begin < exact;
    own.master_weights = in_place ? own.elements.begin : master_weights_;
    if (!in_place) master_weights_ += own.elements.size();
    own.moments = divided ? moments_ : own.elements.begin;
    moments_ += own.elements.size();
  }
}

}  // namespace bamtrain
