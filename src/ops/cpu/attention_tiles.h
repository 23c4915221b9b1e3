#pragma once
// What the forward and the backward pass of the CPU attention share: tile geometry, packing of
// operands into fp32, and the logits of one tile.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/checked.h"
#include "ops/cpu/attention_row_sums.h"
#include "ops/cpu/gemm_microkernel.h"
#include "ops/cpu/simd.h"
#include "ops/ops.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

using simd::Vec;

constexpr int64_t kQ = 64;                 // queries per tile
constexpr int64_t kK = 64;                 // keys per tile
constexpr int64_t kV = kK / simd::kWidth;  // vectors per row of a tile
// A tile's rows have a vector of zeros on either side, so that a diagonal can be read as
// vectors of neighbouring lanes without a test for the tile's edge. A row shares one with the next.
constexpr int64_t kStride = kK + simd::kWidth;
constexpr int64_t kTile = kQ * kStride + simd::kWidth;

inline int64_t padded(int64_t n) { return ceil_div(n, simd::kWidth) * simd::kWidth; }
inline int64_t padded_keys(int64_t T) { return ceil_div(T, kK) * kK; }
/// A reversed table: entry (T - 1 - d), so that a row's biases ascend with the key; margins keep
/// loads past either end inside. Distances go from 0 or, not causal, from -(T - 1) on.
inline int64_t table_length(int64_t T, bool causal) {
  return padded_keys(causal ? T : 2 * T) + 2 * kK;
}

/// Hands out pieces of one task's scratch.
class Pieces {
 public:
  Pieces(float* memory, int64_t floats) : next_(memory), end_(memory + floats) {}
  float* take(int64_t floats) {
    require(padded(floats) <= end_ - next_, "sequences no longer than those that were planned for");
    float* const p = next_;
    next_ += padded(floats);
    return p;
  }

 private:
  float *next_, *end_;
};

using row::kMinusInfinity;

/// Numbers of rows [i0, i1) and keys [j0, end), such as scores: of row i and key j at at(i, j).
/// There is room for whole vectors.
struct Block {
  float* data;
  int64_t stride;
  int64_t i0, i1, j0, end;

  int64_t rows() const { return i1 - i0; }
  int64_t keys() const { return end - j0; }
  float* at(int64_t i, int64_t j) const { return data + (i - i0) * stride + (j - j0); }
  /// The keys [first, last] of row i.
  Block row(int64_t i, int64_t first, int64_t last) const {
    return {at(i, first), stride, i, i + 1, first, last + 1};
  }
};

/// Rows [begin, end) of x (T, D) at (b, h), converted to fp32, times `factor`; columns past D are
/// zero.
void pack_rows(float* out, const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end,
               int64_t Dp, float factor);
/// The inverse: rows of fp32 back to x (T, D) at (b, h).
void unpack_rows(const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end, const float* in,
                 int64_t Dp, float factor);

/// Packed rows [begin, end) of (T, Dp) to one transposed block (D, kK) per key tile; keys past
/// `end` are zero. REQUIRES: `begin` is the first key of a tile.
void transpose_tiles(float* out, const float* rows, int64_t begin, int64_t end, int64_t D,
                     int64_t Dp);

/// The reversed, margined fp32 table of one head (see table_length), of at(d).
template <class At>
inline void reverse_table(float* out, int64_t T, bool causal, At&& at) {
  const int64_t least = causal ? 0 : 1 - T;
  std::fill_n(out, kK, 0.0f);
  for (int64_t d = least; d < T; ++d) out[kK + T - 1 - d] = at(d);
  std::fill(out + kK + T - least, out + table_length(T, causal), 0.0f);
}
/// Where the biases of row i begin for key j0.
inline int64_t table_offset(int64_t T, int64_t i, int64_t j0) { return kK + T - 1 - i + j0; }

/// All ones where first <= j + lane <= last.
inline simd::IVec visible(int64_t j, int64_t first, int64_t last) {
  const simd::IVec key = simd::lanes() + static_cast<int32_t>(j);
  return (key >= static_cast<int32_t>(first)) & (key <= static_cast<int32_t>(last));
}

inline const int32_t* first_keys(const Attention& a, int64_t b) {
  return a.first_key.ptr<int32_t>() + b * a.q.shape[1];
}

// Rows are numbered by position: after a past they begin at past().

/// Which keys the rows of a sequence see. First and last keys never fall.
class Sight {
 public:
  Sight(const Attention& a, int64_t b)
      : first_(first_keys(a, b)),
        last_(a.last_key ? a.last_key.ptr<int32_t>() + b * a.q.shape[1] : nullptr),
        past_(a.past()) {}

  int64_t first(int64_t i) const { return past_ + first_[i - past_]; }
  int64_t last(int64_t i) const { return last_ ? last_[i] : i; }
  /// The keys that row i sees of a block.
  Block row(const Block& z, int64_t i) const { return z.row(i, first(i), last(i)); }
  /// Whether row i sees a single key.
  bool alone(int64_t i) const { return first(i) == last(i); }
  /// The tile where the keys of rows from i0 on begin, and the end of those of rows before i1.
  int64_t first_tile(int64_t i0) const { return first(i0) / kK * kK; }
  int64_t end(int64_t i1) const { return last(i1 - 1) + 1; }
  /// Whether every key of the tile at j0 is visible to every row in [i0, i1).
  bool whole(int64_t i0, int64_t i1, int64_t j0) const {
    return first(i1 - 1) <= j0 && j0 + kK - 1 <= last(i0);
  }

 private:
  const int32_t *first_, *last_;  // by query; null: a row's own
  int64_t past_;
};

/// t and what the bias is multiplied by, of a row of a head.
struct Factors {
  const float* t;  // by query; null: 1
  int64_t past;
  bool on_bias;

  Factors(const Attention& a, int64_t b, int64_t h)
      : t(a.scale ? a.scale.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] : nullptr),
        past(a.past()),
        on_bias(a.form.scale_bias) {}
  float of_content(int64_t i) const { return t ? t[i - past] : 1; }
  float of_bias(int64_t i) const { return on_bias ? of_content(i) : 1; }
};

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
