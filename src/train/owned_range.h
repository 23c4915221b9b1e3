#pragma once

#include "core/flat_range.h"

namespace bamtrain {

/// Elements of the flat buffer that a process updates, and where its tensors have the first one.
struct OwnedRange {
  FlatRange elements;
  int64_t master_weights = 0, moments = 0;
};

}  // namespace bamtrain
