#pragma once
// The order in which the gradients and losses of a step's groups are added. It depends only on the
// number of groups, so every number of processes makes the same additions:
//
//     group   0   1   2   3   4   5   6
//              \ /     \ /     \ /    |     neighbours; an odd last one passes up
//               +---+---+       +----+
//                   +-----------+

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// Groups [begin, end): those of a process, or those whose sum a node of the tree is.
struct GroupRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

/// The groups of a process: contiguous and as even as possible, the longer ranges first.
inline GroupRange groups_of(int rank, int processes, int64_t groups) {
  const int64_t each = groups / processes, longer = groups % processes;
  const auto begin_of = [&](int64_t r) { return r * each + std::min(r, longer); };
  return {begin_of(rank), begin_of(rank + 1)};
}

/// Adds groups in the tree, on a stack of buffers. Sums are pushed in group order, each of a node
/// of the tree. The ones left are the largest nodes within the groups that were pushed:
///
///     for (int64_t group = begin; group < end; ++group) {
///       buffer[stack.size()] = the group's gradients;
///       for (int n = stack.push({group, group + 1}); n > 0; --n) {
///         add the last buffer to the one before it, which becomes the last;
///       }
///     }
class GroupStack {
 public:
  /// groups: of the whole tree.
  explicit GroupStack(int64_t groups) : groups_(groups) { require(groups >= 1, "a group"); }

  /// Returns the number of additions that follow.
  int push(GroupRange sum) {
    sums_.push_back(sum);
    most_ = std::max(most_, sums_.size());
    int additions = 0;
    for (; sums_.size() > 1 && are_added(sums_[sums_.size() - 2], sums_.back()); ++additions) {
      sums_[sums_.size() - 2].end = sums_.back().end;
      sums_.pop_back();
    }
    return additions;
  }

  int64_t size() const { return std::ssize(sums_); }
  /// The largest size() so far, before additions: the number of buffers.
  int64_t most() const { return static_cast<int64_t>(most_); }
  const std::vector<GroupRange>& sums() const { return sums_; }

 private:
  /// Whether two neighbouring nodes have the same parent.
  bool are_added(GroupRange x, GroupRange y) const {
    return std::has_single_bit(static_cast<uint64_t>(x.size())) && x.begin % (2 * x.size()) == 0 &&
           y.end == std::min(x.end + x.size(), groups_);
  }

  int64_t groups_;
  size_t most_ = 0;
  std::vector<GroupRange> sums_;
};

}  // namespace bamtrain
