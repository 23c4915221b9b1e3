#pragma once
// Interleaves several sources into one sequence, in given shares.

#include <cstdint>
#include <vector>

namespace bamtrain {

/// Assigns each number of an infinite sequence to a source, in the shares of `weights`. It is a
/// pure function of the weights and the number: no sequence has to be followed.
///
/// The sources are the leaves of a Huffman tree of their weights. Of the first k numbers that reach
/// a node, round(p k) go left, where p is the share of the left half. Both halves thus grow by one
/// number at a time. A leaf's count differs from its share of the first n by at most 1/2 sum_i w /
/// w_i, over the nodes from the leaf (w_0 = w) to just below the root. In a Huffman tree w_i >= w
/// times the Fibonacci number 1, 1, 2, 3, 5, ... at index i, so the sum is below 3.36 and
///
///   |count(n) - share n| < 1.68 for any n and any weights; at most 1/2 with two sources,
///
/// Independent draws would be off by about sqrt(n). (Tijdeman's rounding, "The chairman assignment
/// problem", 1980, stays below 1, but must be followed from the first number on.)
class Interleave {
 public:
  /// REQUIRES: at least one weight; all finite, positive, at least kSmallestWeight of the largest.
  explicit Interleave(const std::vector<double>& weights);

  struct Place {
    int64_t source = 0;
    int64_t number = 0;  // numbers of this source before this one
    bool operator==(const Place&) const = default;
  };
  /// REQUIRES: 0 <= k < 2^62.
  Place operator()(int64_t k) const;

 private:
  struct Node {
    uint64_t left_share = 0;    // of 2^62
    int left = -1, right = -1;  // children; -1 in a leaf, whose index is its source
  };
  std::vector<Node> nodes_;  // leaves first, the root last
};

/// Weights divided by their sum. REQUIRES: as Interleave.
std::vector<double> shares_of(const std::vector<double>& weights);

}  // namespace bamtrain
