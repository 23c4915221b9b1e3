#pragma once
// What attention of a layer read, kept beyond the pass and in fp64.

#include <deque>
#include <vector>

#include "ops/attention.h"

namespace bamtrain {

class AttentionCopy {
 public:
  /// REQUIRES: tensors in host memory, no past.
  explicit AttentionCopy(const Attention& a);
  AttentionCopy(const AttentionCopy&) = delete;
  AttentionCopy& operator=(const AttentionCopy&) = delete;

  /// Real tensors are f64, all are contiguous.
  const Attention& attention() const { return copy_; }

 private:
  Attention copy_;
  std::deque<std::vector<char>> memory_;  // of a tensor each
};

}  // namespace bamtrain
