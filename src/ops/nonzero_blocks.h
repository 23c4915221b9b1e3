#pragma once
// Counts the blocks of attention that have nonzero weights, from AttentionSaved::live.

#include <cstdint>

namespace bamtrain {

struct BlockCounts {
  int64_t nonzero = 0, visible = 0;
};

/// Counts blocks of kLiveRows rows and kLiveKeys keys of one head of one sequence of T tokens.
/// visible: blocks in which some row sees a key. nonzero: the visible blocks marked in `words`.
/// first_key, last_key (T): as in Attention; last_key is null if attention is causal. words
/// (live_groups(T), live_words(T)): AttentionSaved::live. Null if the normalizer saves no mask, as
/// softmax does; then all visible blocks count as nonzero.
BlockCounts count_blocks(const int32_t* words, const int32_t* first_key, const int32_t* last_key,
                         int64_t T);

}  // namespace bamtrain
