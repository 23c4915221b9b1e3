#pragma once
// A copy in fp64 of the inputs of a layer's attention, which outlives the pass.

#include <deque>
#include <vector>

#include "ops/attention.h"

namespace bamtrain {

class AttentionCopy {
 public:
  /// REQUIRES: tensors in host memory, a.past() == 0.
  explicit AttentionCopy(const Attention& a);
  AttentionCopy(const AttentionCopy&) = delete;
  AttentionCopy& operator=(const AttentionCopy&) = delete;

  /// Real tensors are f64, all are contiguous.
  const Attention& attention() const { return copy_; }

 private:
  Attention copy_;
  std::deque<std::vector<char>> memory_;  // one buffer per tensor
};

}  // namespace bamtrain
