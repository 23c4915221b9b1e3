#pragma once
// How many tokens a layer's KV cache holds, and what mechanisms cache next to it.

#include <algorithm>
#include <cstdint>

#include "ops/ops.h"

namespace bamtrain {

/// The largest prefill chunk, in tokens.
inline constexpr int64_t kMaxPrefillChunk = 512;

/// Tokens that a layer caches of a sequence of up to `longest`, where its rows see the nearest
/// `window` keys (0: all): the keys that a later row sees, and one prefill chunk.
inline int64_t kv_cache_capacity(int64_t window, int64_t longest) {
  const int64_t piece = std::min(longest, kMaxPrefillChunk);
  return window == 0 ? longest : std::min(longest, window - 1 + piece);
}

/// Elements [from, from + count) of dimension `dim` become its first.
void shift_to_front(Backend& backend, const Tensor& t, int dim, int64_t from, int64_t count);

}  // namespace bamtrain
