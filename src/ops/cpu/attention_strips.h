#pragma once
// Strips of the CPU attention: some rows of queries with their logits of all keys, for normalizers
// and biases of whole rows.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

static_assert(kLiveKeys == kK);

constexpr int64_t kStripLogits = int64_t{1} << 16;

/// Rows at a time: as many as keep two or three such arrays near the processor, and whole groups.
inline int64_t strip_rows(int64_t T) {
  return T <= kStripLogits / 64 ? 64 : T <= kStripLogits / 32 ? 32 : kLiveRows;
}
inline int64_t strip_stride(int64_t T) { return padded_keys(T) + simd::kWidth; }
inline int64_t strip_floats(int64_t T) { return strip_rows(T) * strip_stride(T); }
/// The most of any length up to T.
inline int64_t most_strip_floats(int64_t T) {
  int64_t most = strip_floats(T);
  for (int64_t rows = 64; rows > kLiveRows; rows /= 2) {
    most = std::max(most, strip_floats(std::min(T, kStripLogits / rows)));
  }
  return most;
}

/// Rows [i0, i1) of some heads, and the keys [from, end) that any of them sees; `from` begins a
/// tile.
struct Strip {
  int64_t i0, i1, from, end;

  Strip(const Sight& sight, int64_t first, int64_t end_of_rows)
      : i0(first), i1(end_of_rows), from(sight.first_tile(i0)), end(sight.end(i1)) {}
  int64_t rows() const { return i1 - i0; }
  template <class F>
  void for_tiles(F&& f) const {
    for (int64_t j0 = from; j0 < end; j0 += kK) f(j0, std::min(kK, end - j0));
  }
};

/// Numbers of all heads and of consecutive keys of a row: (H, keys).
struct HeadsOfKeys {
  float* data;
  int64_t stride;  // from one head to the next

  float* of(int64_t h) const { return data + h * stride; }
};

/// Numbers of strips, such as logits: (heads, strip_rows, strip_stride), whole tiles of keys.
class Strips {
 public:
  /// keys: of a sequence. one: the memory of one head serves each in turn.
  Strips(float* memory, int64_t keys, bool one)
      : stride_(strip_stride(keys)), of_head_(one ? 0 : strip_floats(keys)), data_(memory) {}
  Block of(const Strip& s, int64_t h) const {
    return {data_ + h * of_head_, stride_, s.i0, s.i1, s.from, padded_keys(s.end)};
  }
  HeadsOfKeys at(const Strip& s, int64_t i, int64_t j) const {
    return {of(s, 0).at(i, j), of_head_};
  }

 private:
  int64_t stride_, of_head_;
  float* data_;
};

/// AttentionSaved::live of one head; without it every tile is live.
class LiveTiles {
 public:
  LiveTiles(const Tensor& live, int64_t b, int64_t h) {
    if (!live) return;
    words_ = live.ptr<int32_t>() + b * live.stride[0] + h * live.stride[1];
    per_group_ = live.shape[3];
  }
  explicit operator bool() const { return words_ != nullptr; }
  void clear(int64_t i0, int64_t i1) const {
    if (!words_) return;
    const int64_t begin = i0 / kLiveRows, end = ceil_div(i1, kLiveRows);
    std::fill_n(words_ + begin * per_group_, (end - begin) * per_group_, 0);
  }
  void mark(int64_t i, int64_t j) const { word(i / kLiveRows, j) |= bit(j); }
  /// Whether any of the groups of rows [i0, i1) gives weight to the tile of key j.
  bool any(int64_t i0, int64_t i1, int64_t j) const {
    if (!words_) return true;
    for (int64_t g = i0 / kLiveRows; g < ceil_div(i1, kLiveRows); ++g) {
      if (word(g, j) & bit(j)) return true;
    }
    return false;
  }

 private:
  static int32_t bit(int64_t j) { return static_cast<int32_t>(uint32_t{1} << (j / kK % 32)); }
  int32_t& word(int64_t group, int64_t j) const { return words_[group * per_group_ + j / kK / 32]; }

  int32_t* words_ = nullptr;
  int64_t per_group_ = 0;
};

/// Elements of the row's strip outside of its own keys become `x`. A strip is of whole tiles.
inline void fill_outside(const Block& strip, const Block& row, float x) {
  std::fill(strip.at(row.i0, strip.j0), row.data, x);
  std::fill(row.data + row.keys(), strip.at(row.i0, strip.end) + simd::kWidth, x);
}

/// A row's numbers of AttentionSaved.
inline SavedRow saved_row(const AttentionSaved& s, int64_t at) {
  SavedRow row;
  if (s.level) row.level = s.level.ptr<float>()[at];
  if (s.threshold) row.threshold = s.threshold.ptr<float>()[at];
  if (s.last) row.last = s.last.ptr<int32_t>()[at];
  return row;
}
inline void save_row(const AttentionSaved& s, int64_t at, const SavedRow& row) {
  if (s.level) s.level.ptr<float>()[at] = row.level;
  if (s.threshold) s.threshold.ptr<float>()[at] = row.threshold;
  if (s.last) s.last.ptr<int32_t>()[at] = row.last;
}

/// What becomes of rows of logits in a forward pass; tensors may be empty.
struct Results {
  Tensor out;
  AttentionSaved saved;
  Tensor entropy;       // (B, H, T) P
  Tensor nonzero_keys;  // (B, H, T) P. If set, weights are recalled from `saved`

  /// Logits of a row of strip z, row `at` of all, become weights. u: a row's scratch.
  void weigh(const Block& z, const Block& row, int64_t at, const NormalizerTraits& traits,
             const RowNormalizer& normalizer, float* u, const LiveTiles& live) const;
};

/// The adjoint of Results::weigh() with `out`: the row's logits in strip p become weights, and its
/// dP in strip dz becomes dz, which is returned. Tiles that are not live are written first.
Block row_adjoint(const Block& p, const Block& dz, const Block& row, const LiveTiles& live,
                  const AttentionSaved& saved, const Tensor& dalpha, int64_t at,
                  const NormalizerTraits& traits, const RowNormalizer& normalizer, float* u);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
