#pragma once
// The order in which the gradients and losses of a step's lanes are added. It depends on the number
// of lanes alone, so that one process that runs all lanes and P processes that run G / P each make
// the same additions:
//
//     lane    0   1   2   3   4   5   6   7
//              \ /     \ /     \ /     \ /       neighbours
//               +---+---+       +---+---+        distance 2
//                   +-------+-------+            distance 4

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// The buffers that sum `lanes` lanes, finished one after another, in the tree above. They fill and
/// empty like the digits of a binary counter: at lane l one buffer per set bit of l holds a
/// finished subtree, so 1 + log2(lanes) buffers suffice.
///
///     for (lane = 0; lane < lanes; ++lane) {
///       clear buffer_for(lane), accumulate the lane's micro-batches into it in index order;
///       for (auto [into, from] : joins_after(lane)) buffer[into] += buffer[from];
///     }                                                   // buffer 0 now holds the sum
///
/// A process that owns `lanes` contiguous lanes numbers them from 0; Communicator::all_reduce_sum
/// then adds the upper levels of the tree.
class LaneTree {
 public:
  /// REQUIRES: `lanes` is a power of two.
  explicit LaneTree(int64_t lanes) : lanes_(lanes) {
    require(lanes >= 1 && std::has_single_bit(static_cast<uint64_t>(lanes)),
            "a number of lanes that is a power of two");
  }

  int64_t lanes() const { return lanes_; }

  /// How many buffers the sum needs: 1 + log2(lanes).
  int buffers() const { return std::bit_width(static_cast<uint64_t>(lanes_)); }

  /// The buffer that `lane` accumulates into; what it held before is no longer needed.
  int buffer_for(int64_t lane) const {
    require(lane >= 0 && lane < lanes_, "a lane of this tree");
    return std::popcount(static_cast<uint64_t>(lane));
  }

  /// The additions (into, from) due when `lane` is finished, in their order.
  std::vector<std::pair<int, int>> joins_after(int64_t lane) const {
    const int newest = buffer_for(lane);
    const int finished_subtrees = std::countr_one(static_cast<uint64_t>(lane));
    std::vector<std::pair<int, int>> joins;
    joins.reserve(static_cast<size_t>(finished_subtrees));
    for (int i = 0; i < finished_subtrees; ++i) joins.emplace_back(newest - i - 1, newest - i);
    return joins;
  }

 private:
  int64_t lanes_;
};

}  // namespace bamtrain
