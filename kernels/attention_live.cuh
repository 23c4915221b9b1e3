#pragma once
// Which tiles of keys groups of rows give weight to: what the forward pass saved of it, by the row
// and by the tile.

#include "attention.cuh"

namespace bamtrain::kernels {

static_assert(kLiveKeys == kTile && kLiveRows == kWarpRows);

/// SavedRows::live of some groups of rows, in the order of the warps. Null: everything is live.
struct LiveRows {
  int32_t* words;  // of the first group
  int groups;      // that are in the sequence
  int per_group;

  template <class A>
  BAMTRAIN_DEVICE LiveRows(const AttentionInputs<A>& a, const SavedRows& saved, int b, int h,
                           int i0, int of_groups)
      : words(nullptr), groups(0), per_group(static_cast<int>(live_words(a.T))) {
    if (saved.live == nullptr) return;
    const int64_t all = live_groups(a.T), group = i0 / kLiveRows;
    groups = static_cast<int>(all - group < of_groups ? all - group : of_groups);
    words = saved.live + ((static_cast<int64_t>(b) * a.H + h) * all + group) * per_group;
  }
  /// Of 32 tiles, a bit for each to which one of the groups [from, from + n) gives weight.
  BAMTRAIN_DEVICE uint32_t word(int from, int n, int at) const {
    if (words == nullptr) return ~uint32_t{0};
    uint32_t bits = 0;
    BAMTRAIN_NO_UNROLL
    for (int g = from; g < from + n && g < groups; ++g) {
      bits |= static_cast<uint32_t>(words[g * per_group + at]);
    }
    return bits;
  }
};

/// The groups of rows of one head that give weight to keys of a tile.
class LiveGroups {
 public:
  template <class A>
  BAMTRAIN_DEVICE LiveGroups(const AttentionInputs<A>& a, const SavedRows& saved, int b, int h,
                             int tile)
      : live_(a, saved, b, h, 0, static_cast<int>(live_groups(a.T))),
        at_(tile / 32),
        bit_(uint32_t{1} << (tile % 32)) {}
  /// Whether one of the n groups from row i0 on does.
  BAMTRAIN_DEVICE bool any(int i0, int n) const {
    return (live_.word(i0 / kLiveRows, n, at_) & bit_) != 0;
  }

 private:
  LiveRows live_;
  int at_;
  uint32_t bit_;
};

/// The tiles that a block of kGroups groups visits, and of them those of the own warp.
template <int kGroups, class A>
class LiveTiles {
 public:
  static constexpr int kOfWarp = kGroups / (kThreads / 32);

  /// Of the rows from i0 on.
  BAMTRAIN_DEVICE LiveTiles(const AttentionInputs<A>& a, const SavedRows& saved, int b, int h,
                            int i0, int warp)
      : a_(a), saved_(saved), b_(b), h_(h), i0_(i0), warp_(warp) {}

  /// Whether a row of the block gives weight to keys of the tile.
  BAMTRAIN_DEVICE bool any(int tile) {
    if (tile / 32 != at_) load(tile / 32);
    return (any_ >> (tile % 32) & 1) != 0;
  }
  /// Whether one of the own warp does.
  BAMTRAIN_DEVICE bool own(int tile) {
    if (tile / 32 != at_) load(tile / 32);
    return (own_ >> (tile % 32) & 1) != 0;
  }

 private:
  BAMTRAIN_DEVICE void load(int at) {
    at_ = at;
    const LiveRows live(a_, saved_, b_, h_, i0_, kGroups);
    any_ = live.word(0, kGroups, at);
    own_ = live.word(kOfWarp * warp_, kOfWarp, at);
  }

  const AttentionInputs<A>& a_;
  const SavedRows& saved_;
  int b_, h_, i0_, warp_, at_ = -1;
  uint32_t any_ = 0, own_ = 0;
};

}  // namespace bamtrain::kernels
