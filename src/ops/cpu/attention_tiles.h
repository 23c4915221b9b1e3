#pragma once
// What the forward and the backward pass of the CPU attention share: tile geometry, packing of
// operands into fp32, and the logits of one tile.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/checked.h"
#include "ops/cpu/attention_fire.h"
#include "ops/cpu/simd.h"
#include "ops/cpu/tile_product.h"
#include "ops/ops.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

using simd::Vec;

constexpr int64_t kQ = 64;                 // queries per tile
constexpr int64_t kK = 64;                 // keys per tile
constexpr int64_t kV = kK / simd::kWidth;  // vectors per row of a tile
// Rows of a logit tile carry one vector of zeros on either side, so that a diagonal can be read as
// one vector of neighbouring lanes without a test for the tile's edge.
constexpr int64_t kMargin = simd::kWidth;
constexpr int64_t kStride = kK + 2 * kMargin;
constexpr int64_t kTile = kQ * kStride;

inline int64_t padded(int64_t n) { return ceil_div(n, simd::kWidth) * simd::kWidth; }
inline int64_t padded_keys(int64_t T) { return ceil_div(T, kK) * kK; }
/// A reversed table: entry (T - 1 - d), so that a row's biases ascend with the key; margins keep
/// loads past either end inside.
inline int64_t table_length(int64_t T) { return padded_keys(T) + 2 * kK; }

/// Hands out pieces of one task's scratch.
class Pieces {
 public:
  explicit Pieces(float* memory) : next_(memory) {}
  float* take(int64_t floats) {
    float* p = next_;
    next_ += padded(floats);
    return p;
  }

 private:
  float* next_;
};

enum class ScaleMode { none, content, both };  // z = s + b;  t s + b;  t (s + b)
/// Where b comes from: nowhere, a table of distances, one number per key and one per query,
/// x = column - row, by a SumBias, or FireBias.
enum class BiasMode { none, table, difference, log_square, fire };
constexpr bool is_sums(BiasMode m) {
  return m == BiasMode::difference || m == BiasMode::log_square;
}

/// Rows of x (T, D) at (b, h), converted to fp32, times `factor`; columns past D are zero.
template <class A>
inline void pack_rows(float* out, const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end,
                      int64_t Dp, float factor) {
  const int64_t D = x.shape[3];
  const A* base = static_cast<const A*>(x.data) + b * x.stride[0] + h * x.stride[2];
  for (int64_t t = begin; t < end; ++t, out += Dp) {
    const A* row = base + t * x.stride[1];
    int64_t c = 0;
    for (; c + simd::kWidth <= D; c += simd::kWidth) {
      simd::store(out + c, simd::load(row + c) * factor);
    }
    if (c < D) simd::store(out + c, simd::load_partial(row + c, D - c) * factor);
  }
}

/// The inverse of pack_rows: rows of fp32 back to x (T, D) at (b, h), times `factor`.
template <class A>
inline void unpack_rows(const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end,
                        const float* in, int64_t Dp, float factor) {
  const int64_t D = x.shape[3];
  A* base = static_cast<A*>(x.data) + b * x.stride[0] + h * x.stride[2];
  for (int64_t t = begin; t < end; ++t, in += Dp) {
    A* row = base + t * x.stride[1];
    int64_t c = 0;
    for (; c + simd::kWidth <= D; c += simd::kWidth) {
      simd::store(row + c, simd::load(in + c) * factor);
    }
    if (c < D) simd::store_partial(row + c, simd::load(in + c) * factor, D - c);
  }
}

/// Packed rows [begin, end) of (T, Dp) to one transposed block (D, kK) per key tile; keys past
/// `end` are zero. REQUIRES: `begin` is the first key of a tile.
inline void transpose_tiles(float* out, const float* rows, int64_t begin, int64_t end, int64_t D,
                            int64_t Dp) {
  for (int64_t j0 = begin; j0 < end; j0 += kK) {
    float* block = out + j0 * D;
    const int64_t n = std::min(kK, end - j0);
    for (int64_t d = 0; d < D; ++d) {
      for (int64_t j = 0; j < n; ++j) block[d * kK + j] = rows[(j0 + j) * Dp + d];
      for (int64_t j = n; j < kK; ++j) block[d * kK + j] = 0;
    }
  }
}

/// The reversed, margined fp32 table of one head (see table_length).
inline void reverse_table(float* out, const float* table, int64_t T) {
  std::fill_n(out, table_length(T), 0.0f);
  for (int64_t d = 0; d < T; ++d) out[kK + T - 1 - d] = table[d];
}
/// Where the biases of row i begin for key j0.
inline int64_t table_offset(int64_t T, int64_t i, int64_t j0) { return kK + T - 1 - i + j0; }

/// The sums of one head, relative to that of the first of a tile's queries, so that fp32 holds the
/// differences near the diagonal.
struct RelativeSums {
  const double* S = nullptr;  // (T)
  float* columns = nullptr;   // of all keys, by position
  float* rows = nullptr;      // of the tile's queries

  /// For queries [i0, i1) and keys from j_first <= i0 on, to the end of the last tile.
  void set_tile(int64_t i0, int64_t i1, int64_t j_first) const {
    for (int64_t j = j_first; j < i1; ++j) columns[j] = static_cast<float>(S[j] - S[i0]);
    std::fill(columns + i1, columns + padded_keys(i1), 0.0f);
    std::copy_n(columns + i0, i1 - i0, rows);
  }
};

/// The biases of the rows of a tile of queries, by mode.
struct Biases {
  const float* table = nullptr;  // reversed
  RelativeSums sums;
  FireRows<kK> fire;

  /// Where the biases of row i begin for key j0: entries of the table, the keys' sums, or biases
  /// that the next call overwrites.
  template <BiasMode kBias>
  const float* of_keys(int64_t T, int64_t i, int64_t j0) const {
    if constexpr (kBias == BiasMode::table) return table + table_offset(T, i, j0);
    if constexpr (is_sums(kBias)) return sums.columns + j0;
    if constexpr (kBias == BiasMode::fire) return fire.biases(i, j0, table_offset(T, i, j0));
    return nullptr;
  }
  template <BiasMode kBias>
  Vec of_row(int64_t r) const {
    return is_sums(kBias) ? simd::splat(sums.rows[r]) : Vec{};
  }
};

/// Room for them.
struct BiasMemory {
  float *table, *more_table, *columns, *rows;

  BiasMemory(Pieces& pieces, int64_t T)
      : table(pieces.take(table_length(T))),
        more_table(pieces.take(table_length(T))),
        columns(pieces.take(padded_keys(T))),
        rows(pieces.take(std::max(kQ, kK))) {}
};
/// Its floats.
inline int64_t bias_floats(int64_t T) {
  return 2 * table_length(T) + padded_keys(T) + std::max(kQ, kK);
}

/// Those of one head.
template <BiasMode kBias>
inline Biases biases_of(const Attention& a, int64_t b, int64_t h, const BiasMemory& memory) {
  const int64_t T = a.q.shape[1];
  Biases x;
  if constexpr (kBias == BiasMode::table) {
    const Tensor& table = std::get<TableBias>(a.bias).table;
    reverse_table(memory.table, table.ptr<float>() + h * table.stride[0], T);
    x.table = memory.table;
  }
  if constexpr (is_sums(kBias)) {
    const Tensor& sums = std::get<SumsBias>(a.bias).sums;
    x.sums = {sums.ptr<double>() + b * sums.stride[0] + h * sums.stride[1], memory.columns,
              memory.rows};
  }
  if constexpr (kBias == BiasMode::fire) {
    const auto& [tables, positions] = std::get<FireBias>(a.bias);
    reverse_table(memory.table, tables.psi.ptr<float>(), T);
    reverse_table(memory.more_table, tables.psi_dc.ptr<float>(), T);
    x.fire = {memory.table,
              memory.more_table,
              tables.inverse.ptr<float>(),
              tables.ends.ptr<int32_t>(),
              positions.ptr<int32_t>() + b * T,
              tables.slope.ptr<float>() + h * kFireSegments,
              tables.offset.ptr<float>() + h * kFireSegments,
              memory.rows};
  }
  return x;
}

/// Whether exp(z) is formed as exp(t s) (1 / (1 + x^2)) in place of exp(t s - log(1 + x^2)): a
/// division instead of a logarithm. Maxima are then over t s, which is as safe: no factor is above
/// 1, and none below 10^-14, while exp spans 10^76.
template <BiasMode kBias, ScaleMode kScale>
constexpr bool kWeighted = kBias == BiasMode::log_square&& kScale != ScaleMode::both;

/// What the logits of one vector of keys need of the bias.
template <BiasMode kBias, ScaleMode kScale>
struct BiasOfKeys {
  Vec x{};       // S_j - S_i, or the bias itself
  Vec weight{};  // 1 / (1 + x^2), with BiasMode::log_square

  BiasOfKeys(const float* of_keys, Vec of_row) {
    if constexpr (kBias == BiasMode::table || kBias == BiasMode::fire) x = simd::load(of_keys);
    if constexpr (is_sums(kBias)) x = simd::load(of_keys) - of_row;
    if constexpr (kBias == BiasMode::log_square) weight = 1.0f / (1.0f + x * x);
  }
  /// What is added to the logits.
  Vec bias() const {
    if constexpr (kBias == BiasMode::none || kWeighted<kBias, kScale>) return Vec{};
    if constexpr (kBias == BiasMode::log_square) return -simd::log(1.0f + x * x);
    return x;
  }
  /// exp(z) from exp of what logits() gave.
  Vec weighted(Vec e) const {
    if constexpr (kWeighted<kBias, kScale>) return e * weight;
    return e;
  }
  /// db times the derivative of the bias with respect to the keys' sums.
  Vec adjoint(Vec db) const {
    return kBias == BiasMode::log_square ? db * (-2.0f * x * weight) : db;
  }
};

/// Logits from content scores and biases.
template <ScaleMode kScale>
inline Vec logits(Vec s, Vec b, Vec t) {
  if constexpr (kScale == ScaleMode::both) return t * (s + b);
  if constexpr (kScale == ScaleMode::content) return t * s + b;
  return s + b;
}

/// All ones where first <= j + lane <= last.
inline simd::IVec visible(int64_t j, int64_t first, int64_t last) {
  const simd::IVec key = simd::lanes() + static_cast<int32_t>(j);
  return (key >= static_cast<int32_t>(first)) & (key <= static_cast<int32_t>(last));
}

inline const int32_t* first_keys(const Attention& a, int64_t b) {
  return a.first_key.ptr<int32_t>() + b * a.q.shape[1];
}

/// Whether every key of the tile at j0 is visible to every row in [i0, i1). first_key never falls.
inline bool whole(const int32_t* first, int64_t i0, int64_t i1, int64_t j0) {
  return first[i1 - 1] <= j0 && j0 + kK - 1 <= i0;
}

/// Calls f.template operator()<kBias>() for a bias.
template <class F>
struct FormOfBias {
  F& f;

  void operator()(const Nothing&) const { f.template operator()<BiasMode::none>(); }
  void operator()(const TableBias&) const { f.template operator()<BiasMode::table>(); }
  void operator()(const FireBias&) const { f.template operator()<BiasMode::fire>(); }
  void operator()(const SumsBias& bias) const {
    switch (bias.form) {
      case SumBias::difference:
        return f.template operator()<BiasMode::difference>();
      case SumBias::log_square:
        return f.template operator()<BiasMode::log_square>();
    }
  }
};

/// Calls f.template operator()<kBias, kScale>() for the form of z that `a` asks for.
template <class F>
inline void dispatch_form(const Attention& a, F&& f) {
  const auto of_scale = [&]<BiasMode kBias>() {
    if (a.scale.t && a.scale.on_bias && kBias != BiasMode::none) {
      return f.template operator()<kBias, ScaleMode::both>();
    }
    if (a.scale.t) return f.template operator()<kBias, ScaleMode::content>();
    return f.template operator()<kBias, ScaleMode::none>();
  };
  std::visit(FormOfBias{of_scale}, a.bias);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
