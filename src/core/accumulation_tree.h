#pragma once
// The order in which the gradients and losses of a step's gradient accumulation groups are added.
// It depends only on the number of groups G. So one process that runs all groups, and P processes
// that run G / P each, make the same additions:
//
//     group   0   1   2   3   4   5   6   7
//              \ /     \ /     \ /     \ /       neighbours
//               +---+---+       +---+---+        distance 2
//                   +-------+-------+            distance 4

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// The buffers that sum `groups` groups, finished one after another, in the tree above. They fill
/// and empty like the digits of a binary counter. At group l, one buffer per set bit of l holds a
/// finished subtree, so 1 + log2(groups) buffers suffice.
///
///     for (group = 0; group < groups; ++group) {
///       clear buffer_for(group), accumulate the group's microbatches into it in index order;
///       for (auto [into, from] : joins_after(group)) buffer[into] += buffer[from];
///     }                                                   // buffer 0 now holds the sum
///
/// A process that owns `groups` contiguous groups numbers them from 0; Communicator::all_reduce_sum
/// then adds the upper levels of the tree.
class AccumulationTree {
 public:
  /// REQUIRES: `groups` is a power of two.
  explicit AccumulationTree(int64_t groups) : groups_(groups) {
    require(groups >= 1 && std::has_single_bit(static_cast<uint64_t>(groups)),
            "a number of groups that is a power of two");
  }

  int64_t groups() const { return groups_; }

  /// The number of buffers that the sum needs: 1 + log2(groups).
  int buffers() const { return std::bit_width(static_cast<uint64_t>(groups_)); }

  /// The buffer that `group` accumulates into; its previous content is no longer needed.
  int buffer_for(int64_t group) const {
    require(group >= 0 && group < groups_, "a group of this tree");
    return std::popcount(static_cast<uint64_t>(group));
  }

  /// The additions (into, from) to make, in order, after `group` is finished.
  std::vector<std::pair<int, int>> joins_after(int64_t group) const {
    const int newest = buffer_for(group);
    const int finished_subtrees = std::countr_one(static_cast<uint64_t>(group));
    std::vector<std::pair<int, int>> joins;
    joins.reserve(static_cast<size_t>(finished_subtrees));
    for (int i = 0; i < finished_subtrees; ++i) joins.emplace_back(newest - i - 1, newest - i);
    return joins;
  }

 private:
  int64_t groups_;
};

}  // namespace bamtrain
