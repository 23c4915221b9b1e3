#pragma once
// How much of texts that grow is remembered: of keys, of values and of what mechanisms have beside
// them.

#include <algorithm>
#include <cstdint>

#include "ops/ops.h"

namespace bamtrain {

/// Tokens that texts which grow take at a time, at most.
inline constexpr int64_t kMostAppended = 512;

/// Of a text of up to `longest` tokens, those that a layer has room for whose rows see the nearest
/// `window` keys, 0: all: what a row to come sees, and a piece.
inline int64_t remembered_tokens(int64_t window, int64_t longest) {
  const int64_t piece = std::min(longest, kMostAppended);
  return window == 0 ? longest : std::min(longest, window - 1 + piece);
}

/// Elements [from, from + count) of dimension `dim` become its first.
void move_to_front(Backend& backend, const Tensor& t, int dim, int64_t from, int64_t count);

}  // namespace bamtrain
