#pragma once

#include "core/tensor.h"

namespace bamtrain {

/// Elements [begin, end) of a flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  FlatRange shifted(int64_t by) const { return {begin + by, end + by}; }
  Tensor of(const Tensor& flat) const { return flat.slice(0, begin, size()); }
};

}  // namespace bamtrain
