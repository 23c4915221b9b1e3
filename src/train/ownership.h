#pragma once
// The part of the optimizer's state that a process keeps, of the parameters that it updates
// (Rajbhandari et al. 2020, ZeRO stage 1).

#include <cstdint>
#include <vector>

#include "core/group_reduction.h"
#include "model/network.h"
#include "train/owned_range.h"

namespace bamtrain {

class Ownership {
 public:
  enum class MasterWeights { all, exact };

  /// What a process updates of each range in which gradients are exchanged: its
  /// GroupReduction::own_range(), or all of it if not `divided`. Its master weights are all, or
  /// the exact parameters (ParameterLayout) and after them those that it updates.
  Ownership(const Network& model, const GroupReduction& reduction, bool divided,
            MasterWeights kept);

  bool divided() const { return divided_; }
  bool has_all_master_weights() const { return keeps_all_; }
  /// Network::ranges_of, of its first parts() / 2 + 1 parts.
  const std::vector<std::vector<FlatRange>>& ranges_of_parts() const { return of_parts_; }
  /// Those of all parts, in memory order, and what the process updates of each.
  const std::vector<FlatRange>& segments() const { return segments_; }
  const std::vector<OwnedRange>& owned() const { return owned_; }
  int64_t master_weights() const { return master_weights_; }  // elements that the process keeps
  int64_t moments() const { return moments_; }

 private:
  bool divided_, keeps_all_;
  std::vector<std::vector<FlatRange>> of_parts_;
  std::vector<FlatRange> segments_;
  std::vector<OwnedRange> owned_;
  int64_t master_weights_ = 0, moments_ = 0;
};

}  // namespace bamtrain
