#pragma once
// Strips of the CPU attention's general path: some rows of queries with their logits of all keys,
// which stages pass one after another, and what those read of a call beside them.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_bias_rows.h"
#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

static_assert(kLiveKeys == kK);

constexpr int64_t kStripLogits = int64_t{1} << 16;

/// Rows at a time: as many as keep three such arrays near the processor, and whole groups.
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

/// AttentionSaved::live of one head; without it every tile is live.
class LiveTiles {
 public:
  LiveTiles(const Tensor& live, int64_t b, int64_t h) {
    if (!live) return;
    words_ = live.ptr<int32_t>() + b * live.stride[0] + h * live.stride[1];
    per_group_ = live.shape[3];
  }
  void clear(int64_t i0, int64_t i1) const {
    if (!words_) return;
    const int64_t begin = i0 / kLiveRows, end = ceil_div(i1, kLiveRows);
    std::fill_n(words_ + begin * per_group_, (end - begin) * per_group_, 0);
  }
  void mark(int64_t i, int64_t j) const {
    if (words_) word(i / kLiveRows, j) |= bit(j);
  }
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

/// The rows of queries [i0, i1) and the keys [from, to) of whole tiles that any of them sees, none
/// from `end` on: arrays of (rows, strip_stride) floats.
struct Strip {
  const Attention& a;
  const Sight sight;
  int64_t i0, i1, from, end, to;

  Strip(const Attention& of, int64_t b, int64_t first_row, int64_t end_of_rows)
      : a(of),
        sight(of, b),
        i0(first_row),
        i1(end_of_rows),
        from(sight.first_tile(i0)),
        end(sight.end(i1)),
        to(padded_keys(end)) {}

  int64_t rows() const { return i1 - i0; }
  float* at(float* array, int64_t i, int64_t j) const {
    return array + (i - i0) * strip_stride(a.q.shape[1]) + (j - from);
  }
  RowSpan row(int64_t i) const {
    return {i, i - i0, sight.first(i), sight.last(i) - sight.first(i) + 1};
  }

  /// What lies beside a row's own keys becomes `x`.
  void fill_beside(float* array, const RowSpan& row, float x) const {
    std::fill(at(array, row.i, from), at(array, row.i, row.first), x);
    std::fill(at(array, row.i, row.first + row.n), at(array, row.i, to) + simd::kWidth, x);
  }
  template <class F>
  void for_tiles(F&& f) const {
    for (int64_t j0 = from; j0 < to; j0 += kK) f(j0);
  }
};

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

/// work(bias, normalizer, scratch that is left) for a task.
template <class F>
void with_stages(const Attention& a, const AttentionScratch& s, int64_t slot,
                 const BiasGradients* g, F&& work) {
  const int64_t T = a.q.shape[1];
  float* const scratch = s.of_slot(slot);
  float* const rest = scratch + padded(row_bias_floats(T, a.q.shape[3], s.content)) + simd::kWidth;
  const auto with_bias = [&](RowBias& bias) {
    const auto with_both = [&](RowNormalizer& normalizer) { work(bias, normalizer, rest); };
    with_row_normalizer(a.normalizer, T, std::ref(with_both));
  };
  with_row_bias(a, s, g, scratch, std::ref(with_bias));
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
