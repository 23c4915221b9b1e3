#include "data/interleave.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/data_config.h"

namespace bamtrain {

namespace {

constexpr int kShareBits = 62;
__extension__ typedef unsigned __int128 Wide;

/// round(share k / 2^62), halves up: it grows by 0 or 1 as k grows by 1.
int64_t part_of(uint64_t share, int64_t k) {
  const Wide half = Wide{1} << (kShareBits - 1);
  return static_cast<int64_t>((Wide{share} * static_cast<uint64_t>(k) + half) >> kShareBits);
}

}  // namespace

std::vector<double> shares_of(const std::vector<double>& weights) {
  require(!weights.empty(), "at least one weight");
  // Divide by the largest first: the sum of large weights could overflow.
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::vector<double> shares;
  double sum = 0;
  for (const double w : weights) {
    require(std::isfinite(w) && w / largest >= kSmallestWeight,
            "weights that are not rounded away");
    shares.push_back(w / largest);
    sum += shares.back();
  }
  for (double& s : shares) s /= sum;
  return shares;
}

Interleave::Interleave(const std::vector<double>& weights) {
  std::vector<double> shares = shares_of(weights);  // by node
  std::vector<int> open;
  nodes_.resize(shares.size());
  for (size_t s = 0; s < shares.size(); ++s) open.push_back(static_cast<int>(s));
  const auto take_smallest = [&] {
    const auto at = std::min_element(open.begin(), open.end(), [&](int a, int b) {
      return shares[static_cast<size_t>(a)] < shares[static_cast<size_t>(b)];
    });
    const int node = *at;
    open.erase(at);
    return node;
  };
  while (open.size() > 1) {
    const int right = take_smallest(), left = take_smallest();
    const double l = shares[static_cast<size_t>(left)], r = shares[static_cast<size_t>(right)];
    nodes_.push_back({static_cast<uint64_t>(std::ldexp(l / (l + r), kShareBits)), left, right});
    shares.push_back(l + r);
    open.push_back(static_cast<int>(nodes_.size()) - 1);
  }
}

Interleave::Place Interleave::operator()(int64_t k) const {
  require(k >= 0 && k < int64_t{1} << kShareBits, "a number from 0 to 2^62 - 1");
  int node = static_cast<int>(nodes_.size()) - 1;
  while (nodes_[static_cast<size_t>(node)].left >= 0) {
    const Node& n = nodes_[static_cast<size_t>(node)];
    const int64_t before = part_of(n.left_share, k);
    const bool goes_left = part_of(n.left_share, k + 1) > before;
    node = goes_left ? n.left : n.right;
    k = goes_left ? before : k - before;
  }
  return {node, k};
}

}  // namespace bamtrain
