#pragma once
// Number of tokens in a layer's KV cache, and in the caches of mechanisms.

#include <algorithm>
#include <cstdint>

#include "ops/ops.h"

namespace bamtrain {

/// The largest prefill chunk, in tokens.
inline constexpr int64_t kMaxPrefillChunk = 512;

/// Tokens that a layer caches for a sequence of up to `longest`: the keys that a later row sees,
/// and one prefill chunk. Rows see the nearest `window` keys (0: all).
inline int64_t kv_cache_capacity(int64_t window, int64_t longest) {
  const int64_t piece = std::min(longest, kMaxPrefillChunk);
  return window == 0 ? longest : std::min(longest, window - 1 + piece);
}

/// Moves elements [from, from + count) of dimension `dim` to its front.
void shift_to_front(Backend& backend, const Tensor& t, int dim, int64_t from, int64_t count);

}  // namespace bamtrain
