#pragma once
// An all-reduce of gradients over the processes of a run whose result is bitwise identical for any
// number of them.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/flat_range.h"
#include "core/group_tree.h"
#include "core/peer_link.h"

namespace bamtrain {

/// Adds the sums of all processes' groups in the tree of core/group_tree.h. If every process has
/// one sum and their number is a power of two that fits the tree, by recursive halving. Otherwise
/// each process receives all sums of its range of the elements, adds them and returns the result.
class GroupReduction {
 public:
  /// Ranges of elements begin at multiples of `alignment`. REQUIRES: 1 <= processes <= groups.
  GroupReduction(int rank, int processes, int64_t groups, int64_t alignment = kAlignment);

  /// The groups of this process, of which it has own_sums() sums: the largest nodes of the tree.
  GroupRange groups() const { return groups_of(rank_, processes_, groups_); }
  int64_t own_sums() const { return sums_of(rank_); }
  /// Sums of all processes, in group order; those of this one begin with number first_sum().
  int64_t all_sums() const { return std::ssize(additions_); }
  int64_t first_sum() const { return first_[static_cast<size_t>(rank_)]; }

  /// The tree's sum of one number for each of all_sums(), which are overwritten.
  double total(std::span<double> sums) const;

  /// The elements of n that a process adds: whole blocks of `alignment`, the last one cut off at n.
  /// Those of all processes are all n.
  FlatRange range_of(int rank, int64_t n) const { return part_of(blocks_of(rank, n, 1), n, 1); }
  FlatRange own_range(int64_t n) const { return range_of(rank_, n); }

  /// Of each of `ranges` of the elements of sums[0], replaces the own_range() by the sum over all
  /// groups; its other elements and the other sums are left undefined. NaN results are NaN
  /// everywhere, but their payload may depend on the number of processes.
  ///
  /// `messages`, of the sums' dtype and in memory that the link can access, is the receive buffer.
  /// Messages that start together have at most a PeerLink::kSlots-th of it, divided by the number
  /// of sums that are received at a time. REQUIRES: all processes call it with the same sizes.
  void reduce(PeerLink& link, std::span<const FlatRange> ranges, std::span<const Tensor> sums,
              const Tensor& messages);
  /// Sends own_range(n) of each tensor (n) of any dtype to all others, and receives theirs. `per`:
  /// 1, or the alignment for tensors with one element for each block of n. REQUIRES: as reduce().
  void gather(PeerLink& link, std::span<const Tensor> tensors, int64_t per = 1);

  /// reduce() of all elements, then gather() of the result.
  void run(PeerLink& link, std::span<const Tensor> sums, const Tensor& messages);

  /// The processes with which this one exchanges messages.
  std::vector<int> partners() const;
  /// Whether the reduction is by recursive halving.
  bool halves() const { return halves_; }
  /// Elements that a process sends when it reduces n, and when it gathers them.
  int64_t elements_reduced(int rank, int64_t n) const;
  int64_t elements_gathered(int rank, int64_t n) const;

 private:
  int64_t sums_of(int rank) const {
    const auto r = static_cast<size_t>(rank);
    return first_[r + 1] - first_[r];
  }
  static constexpr int64_t kAlignment = 64;  // suits vector instructions
  /// Of a tensor of n elements, one for `per`: the blocks that a process adds; by halves, those
  /// that it and the ranks with the same lowest `level` bits have among them.
  FlatRange blocks_of(int rank, int64_t n, int64_t per) const;
  FlatRange half_of(int rank, int level, int64_t n, int64_t per) const;
  /// The elements in these blocks.
  FlatRange part_of(FlatRange blocks, int64_t n, int64_t per) const;
  int levels() const { return std::countr_zero(static_cast<unsigned>(processes_)); }
  void reduce_by_halves(PeerLink& link, std::span<const FlatRange> ranges, const Tensor& data,
                        const Tensor& messages);
  void reduce_directly(PeerLink& link, std::span<const FlatRange> ranges,
                       std::span<const Tensor> sums, const Tensor& messages);
  void gather_by_halves(PeerLink& link, std::span<const Tensor> tensors, int64_t per);
  void gather_directly(PeerLink& link, std::span<const Tensor> tensors, int64_t per);

  int rank_, processes_;
  int64_t groups_, alignment_;
  std::vector<int64_t> first_;  // (processes + 1): the first sum of each
  std::vector<int> additions_;  // by sum: GroupStack::push
  int64_t most_received_ = 0;   // sums that a process receives, at most
  bool halves_ = false;
  std::vector<PeerMessage> batch_;  // that start together
};

}  // namespace bamtrain
