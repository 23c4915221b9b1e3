#pragma once
// The number of keys that a row sees.

#include <cstdint>

#include "core/tensor.h"

namespace bamtrain {

/// Returns n_i of row i of sequence b, in host memory. first_key, last_key: as in Attention.
inline int64_t visible_keys(const Tensor& first_key, const Tensor& last_key, int64_t b, int64_t i) {
  const int64_t at = b * first_key.shape[1] + i;
  const int64_t last = last_key ? last_key.ptr<int32_t>()[at] : i;
  return last - first_key.ptr<int32_t>()[at] + 1;
}

}  // namespace bamtrain
