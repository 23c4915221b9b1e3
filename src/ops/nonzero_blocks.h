#pragma once
// How many blocks of attention have nonzero weights: AttentionSaved::live, counted.

#include <cstdint>

namespace bamtrain {

struct BlockCounts {
  int64_t nonzero = 0, visible = 0;
};

/// Tiles of kLiveRows rows and kLiveKeys keys of one head of one sequence of T tokens: those of
/// which a row sees a key, and the live ones among them. first_key, last_key (T): Attention's, the
/// second null where attention is causal; words (live_groups(T), live_words(T)):
/// AttentionSaved::live, or null where none is saved, as by softmax: then all are live.
BlockCounts count_blocks(const int32_t* words, const int32_t* first_key, const int32_t* last_key,
                         int64_t T);

}  // namespace bamtrain
