#include "ops/nonzero_blocks.h"

#include <algorithm>

#include "normalizers/live_tiles.h"

namespace bamtrain {

BlockCounts count_blocks(const int32_t* words, const int32_t* first_key, const int32_t* last_key,
                         int64_t T) {
  BlockCounts count;
  for (int64_t group = 0; group < live_groups(T); ++group) {
    const int64_t i0 = group * kLiveRows, i1 = std::min(i0 + kLiveRows, T);
    // first_key and last_key are non-decreasing: the group's first row sees furthest back, its last
    // one furthest ahead. If rows see only their own documents, every block in between is still
    // visible.
    const int64_t last = last_key ? last_key[i1 - 1] : i1 - 1;
    for (int64_t tile = first_key[i0] / kLiveKeys; tile <= last / kLiveKeys; ++tile) {
      ++count.visible;
      const auto bits = words == nullptr
                            ? ~uint32_t{0}
                            : static_cast<uint32_t>(words[group * live_words(T) + tile / 32]);
      count.nonzero += bits >> (tile % 32) & 1;
    }
  }
  return count;
}

}  // namespace bamtrain
