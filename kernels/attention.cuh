#pragma once
// What the attention kernels share: arguments, tiles in shared memory, products of tiles and the
// form of a logit. bf16 operands, fp32 accumulation, sm_80 and later.
//
// A block has four warps; a warp owns one or two tiles of 16 rows of a product. Of two, each
// operand that is read from shared memory serves both: an ldmatrix of four 8 x 8 matrices takes as
// long as two to four products of tensor cores, and feeds two of them for each tile.
//
// Tiles lie in shared memory with 16 bytes of padding per row: the eight rows that one ldmatrix
// reads then start in eight different groups of four banks, for every D that is a multiple of 16. D
// = 48 costs 48.

#include "attention_weights.cuh"

namespace bamtrain::kernels {

using device::SharedAddress;

/// Where b comes from: AttentionInputs::table; its numbers, by the formula of that name; fire; or
/// AttentionInputs::formed, in the forward pass alone.
enum class BiasMode { none, table, difference, log_square, fire, formed };
template <BiasMode kBias>
constexpr bool kSums = kBias == BiasMode::difference || kBias == BiasMode::log_square;
/// Whether a slice in shared memory has what b is made of.
template <BiasMode kBias>
constexpr bool kHasSlice = kBias != BiasMode::none&& kBias != BiasMode::formed;

/// z = s + b;  t s + b;  t (s + b);  and rows: t s + u b, where the arguments say whether t is 1
/// and whether u is t or 1. Sums, fire and formed biases have this form alone, so that there are
/// fewer kernels to build.
enum class ScaleMode { none, content, both, rows };

constexpr int kThreads = 128;
constexpr int kWarpRows = 16;
constexpr int kSlice = kThreads;  // of biases, in backward_keys: >= kTile + queries per tile - 1

/// What the fused kernels read.
struct FusedInputs : AttentionInputs<bf16> {
  float score_factor;  // of a product <q, k>, for logits in base 2

  explicit FusedInputs(const AttentionInputs<bf16>& a)
      : AttentionInputs<bf16>(a), score_factor(kLog2e / a.content_divisor) {}
};

template <class Element>
BAMTRAIN_DEVICE Element* row_of(const Rows<Element>& x, int b, int t, int h) {
  return x.data + b * x.batch + t * x.row + h * x.head;
}

struct alignas(8) TwoFloats {
  float x, y;
};

/// Bytes from one row of a tile to the next.
template <int D>
constexpr uint32_t kRowBytes = 2 * D + 16;
template <int D, int kRows = kTile>
constexpr uint32_t kTileBytes = kRows* kRowBytes<D>;

struct Lane {
  int warp, lane;
  int row, pair;  // of an accumulator: rows `row` and `row` + 8, columns 2 `pair` and 2 `pair` + 1

  BAMTRAIN_DEVICE Lane() {
    const int thread = static_cast<int>(device::thread_index().x);
    warp = thread / 32;
    lane = thread % 32;
    row = lane / 4;
    pair = lane % 4;
  }
  /// Column of element e of the n-th eight columns of an accumulator; its row is that of e / 2.
  BAMTRAIN_DEVICE int column(int n, int e) const { return 8 * n + 2 * pair + e % 2; }
};

/// Starts the copy of rows [t0, t0 + kRows) of (b, h) into a tile; rows past T become zero.
template <int D, int kRows = kTile>
BAMTRAIN_DEVICE void copy_tile(SharedAddress to, const Rows<const bf16>& x, int b, int h, int t0,
                               int T) {
  constexpr int kChunks = D / 8;  // of 16 bytes
  BAMTRAIN_NO_UNROLL
  for (int n = static_cast<int>(device::thread_index().x); n < kRows * kChunks; n += kThreads) {
    const int r = n / kChunks, c = n % kChunks, t = t0 + r;
    device::copy_async_16(to + static_cast<uint32_t>(r) * kRowBytes<D> + 16u * c,
                          row_of(x, b, t < T ? t : 0, h) + 8 * c, t < T);
  }
}

/// The 16 x 16 operand A at rows `rows` and columns [16 step, 16 step + 16).
template <int D>
BAMTRAIN_DEVICE void load_a(uint32_t (&a)[4], SharedAddress rows, int step, const Lane& l) {
  device::ldmatrix(a, rows + static_cast<uint32_t>(l.lane % 16) * kRowBytes<D> +
                          16u * static_cast<uint32_t>(2 * step + l.lane / 16));
}

/// For each of M row tiles c (16, 8 N) += A X^T for the step-th 16 columns of A (16, D) and of
/// X (8 N, D), a tile.
template <int D, int M, int N>
BAMTRAIN_DEVICE void multiply_transposed(float (&c)[M][N][4], const uint32_t (&a)[M][4],
                                         SharedAddress x, int step, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N / 2; ++n) {
    const int row = 16 * n + l.lane % 8 + l.lane / 16 * 8, chunk = 2 * step + l.lane / 8 % 2;
    uint32_t b[4];
    device::ldmatrix(
        b, x + static_cast<uint32_t>(row) * kRowBytes<D> + 16u * static_cast<uint32_t>(chunk));
    BAMTRAIN_UNROLL
    for (int m = 0; m < M; ++m) {
      device::mma_m16n8k16(c[m][2 * n], a[m], b[0], b[1]);
      device::mma_m16n8k16(c[m][2 * n + 1], a[m], b[2], b[3]);
    }
  }
}

/// For each of M row tiles c (16, 8 N) += A X for A (16, 16 S) in registers and the first 8 N
/// columns of X (16 S, D), a tile.
template <int D, int M, int N, int S>
BAMTRAIN_DEVICE void multiply(float (&c)[M][N][4], const uint32_t (&a)[M][S][4], SharedAddress x,
                              const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < N / 2; ++n) {
      uint32_t b[4];
      device::ldmatrix_transposed(b,
                                  x + static_cast<uint32_t>(16 * s + l.lane % 16) * kRowBytes<D> +
                                      16u * static_cast<uint32_t>(2 * n + l.lane / 16));
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) {
        device::mma_m16n8k16(c[m][2 * n], a[m][s], b[0], b[1]);
        device::mma_m16n8k16(c[m][2 * n + 1], a[m][s], b[2], b[3]);
      }
    }
  }
}

/// An accumulator (16, 8 N), rounded to bf16, as an operand A (16, 8 N).
template <int N>
BAMTRAIN_DEVICE void as_operand(uint32_t (&a)[N / 2][4], const float (&c)[N][4]) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    a[n / 2][n % 2 * 2] = device::pack_bf16(c[n][0], c[n][1]);
    a[n / 2][n % 2 * 2 + 1] = device::pack_bf16(c[n][2], c[n][3]);
  }
}

/// What a raw product <q, k> is multiplied by first, in a row of scale t.
template <ScaleMode kScale>
BAMTRAIN_DEVICE float product_factor(float score_factor, float t) {
  return kScale == ScaleMode::content || kScale == ScaleMode::rows ? score_factor * t
                                                                   : score_factor;
}

/// The logit in base 2 from a raw product, given factor = product_factor and the bias in base 2; t
/// is u with ScaleMode::rows.
template <BiasMode kBias, ScaleMode kScale>
BAMTRAIN_DEVICE float logit(float product, float factor, float t, float bias) {
  if (kScale == ScaleMode::rows) return product * factor + t * bias;
  const float z = kBias == BiasMode::none ? product * factor : product * factor + bias;
  return kScale == ScaleMode::both ? t * z : z;
}

/// b in base 2 from x = S_j - S_i, and db/dx.
template <BiasMode kBias>
BAMTRAIN_DEVICE float bias_of_sums(float x) {
  return kBias == BiasMode::difference ? x * kLog2e : -device::log2_approx(1.0f + x * x);
}
template <BiasMode kBias>
BAMTRAIN_DEVICE float bias_derivative(float x) {
  return kBias == BiasMode::difference ? 1.0f : -2.0f * x / (1.0f + x * x);
}

/// The bias in base 2 at distance d, or psi of fire; zero outside the table.
template <BiasMode kBias>
BAMTRAIN_DEVICE float bias_at(const AttentionInputs<bf16>& a, int h, int d) {
  if (d < 0 || d >= a.T) return 0.0f;
  return kBias == BiasMode::fire ? a.fire.psi[d] : a.table[h * a.table_head + d] * kLog2e;
}

/// Row tiles of queries that a warp owns in the kernels of one block per tile of queries. At larger
/// head dimensions registers do not hold two.
template <int D>
constexpr int kQueryTile = attention_query_rows(D);
template <int D>
constexpr int kRowTiles = kQueryTile<D> / 64;
/// Biases of a slice there that a thread loads, and the floats of the slice.
template <int D, int kKeys>
constexpr int kSliceLoads = (kQueryTile<D> + kKeys - 1 + kThreads - 1) / kThreads;
template <int D, int kKeys>
constexpr int kQuerySlice = kSliceLoads<D, kKeys>* kThreads;
/// Of sums the slice holds one number per key, relative to the block's first query.
template <int D, int kKeys, BiasMode kBias>
constexpr int kBiasLoads = kSums<kBias> ? 1 : kSliceLoads<D, kKeys>;

/// The queries of one head that a block owns, the longest rows first, so that short ones fill the
/// gaps at the end of a grid (tiles of queries, H, B); and the tiles of kKeys keys that they see. A
/// thread holds parts of two rows of each of its row tiles: index 2 m + r is row r of tile m.
template <int D, int kKeys, BiasMode kBias, ScaleMode kScale>
struct QueryBlock {
  static constexpr int kLoads = kBiasLoads<D, kKeys, kBias>;
  static constexpr int kRows = 2 * kRowTiles<D>;  // of a thread

  int b, h, i0;
  int first_tile, last_tile;      // of keys
  int end, widest_first;          // T; the largest first key
  int warp_begin;                 // the first key that any row of this warp sees; none: T
  int rows[kRows], first[kRows];  // rows past T: first is past the row, they see nothing
  float factor[kRows], t[kRows];  // of logit(), but for u
  float u[kRows], sum[kRows];     // of ScaleMode::rows; S_i of a row, relative to the first's
  float score_factor;
  double first_sum;

  BAMTRAIN_DEVICE QueryBlock(const FusedInputs& a, const Lane& l) : score_factor(a.score_factor) {
    const int tiles = static_cast<int>(device::grid_size().x);
    i0 = a.formed.first + kQueryTile<D> * (tiles - 1 - static_cast<int>(device::block_index().x));
    h = static_cast<int>(device::block_index().y);
    b = static_cast<int>(device::block_index().z);
    end = a.T;
    const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
    const int last_row = i0 + kQueryTile<D> <= a.T ? i0 + kQueryTile<D> - 1 : a.T - 1;
    first_tile = first_key[i0] / kKeys;
    last_tile = last_row / kKeys;
    widest_first = first_key[last_row];
    const int warp_row = i0 + tile_row(l, 0);
    warp_begin = warp_row < a.T ? first_key[warp_row] : a.T;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      rows[r] = i0 + tile_row(l, r / 2) + l.row + 8 * (r % 2);
      first[r] = inside(r) ? first_key[rows[r]] : rows[r] + 1;
      const bool scaled =
          kScale == ScaleMode::rows ? a.scale != nullptr : kScale != ScaleMode::none;
      t[r] = scaled && inside(r) ? a.scale[of_row(a, r)] : 1.0f;
      factor[r] = product_factor<kScale>(score_factor, t[r]);
      u[r] = a.scale_bias ? t[r] : 1.0f;
    }
    if constexpr (kSums<kBias>) {
      const double* const S = a.numbers_of(b, h);
      first_sum = S[i0];
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sum[r] = inside(r) ? static_cast<float>(S[rows[r]] - first_sum) : 0.0f;
      }
    }
  }

  /// Where in the block's tile of queries the m-th row tile of this warp begins.
  BAMTRAIN_DEVICE static int tile_row(const Lane& l, int m) {
    return (l.warp * kRowTiles<D> + m) * kWarpRows;
  }
  /// Where row r is in a (B, H, T) array.
  BAMTRAIN_DEVICE int64_t of_row(const AttentionInputs<bf16>& a, int r) const {
    return (static_cast<int64_t>(b) * a.H + h) * a.T + rows[r];
  }
  BAMTRAIN_DEVICE bool inside(int r) const { return rows[r] < end; }
  /// Whether every row of this warp sees every key of the tile at j0.
  BAMTRAIN_DEVICE bool warp_sees_all(const Lane& l, int j0) const {
    return j0 + kKeys - 1 <= i0 + tile_row(l, 0) && widest_first <= j0 &&
           i0 + tile_row(l, kRowTiles<D>) <= end;
  }
  /// Whether any row of this warp may see a key of the tile at j0: the same for all lanes.
  BAMTRAIN_DEVICE bool warp_sees(const Lane& l, int j0) const {
    return j0 < i0 + tile_row(l, kRowTiles<D>) && j0 + kKeys > warp_begin;
  }
  BAMTRAIN_DEVICE bool sees(int r, int j) const { return j <= rows[r] && j >= first[r]; }
  /// Of the n-th entry of a slice that a thread loads.
  BAMTRAIN_DEVICE int distance(int j0, int thread, int n) const {
    return i0 - j0 + thread + n * kThreads - (kKeys - 1);
  }
  /// What this thread loads for the tile of keys at j0: every kThreads-th entry of the slice of the
  /// table, in base 2, or of psi, that the tile needs; or the sum of a key.
  BAMTRAIN_DEVICE void load_biases(float (&to)[kLoads], const AttentionInputs<bf16>& a, int j0,
                                   int thread) const {
    if constexpr (kSums<kBias>) {
      const int j = j0 + thread;
      const double* const S = a.numbers_of(b, h);
      to[0] = thread < kKeys && j < a.T ? static_cast<float>(S[j] - first_sum) : 0.0f;
    } else {
      BAMTRAIN_UNROLL
      for (int n = 0; n < kLoads; ++n) {
        to[n] = bias_at<kBias>(a, h, distance(j0, thread, n));
      }
    }
  }
  /// The same of fire's psi_dc.
  BAMTRAIN_DEVICE void load_derivatives(float (&to)[kLoads], const AttentionInputs<bf16>& a, int j0,
                                        int thread) const {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kLoads; ++n) {
      const int d = distance(j0, thread, n);
      to[n] = d >= 0 && d < a.T ? a.fire.psi_dc[d] : 0.0f;
    }
  }
  /// Puts them into the slice.
  BAMTRAIN_DEVICE static void store_biases(float* slice, const float (&from)[kLoads], int thread) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kLoads; ++n) slice[thread + n * kThreads] = from[n];
  }
  /// Where in a slice the distance of row r and a key of the tile is.
  BAMTRAIN_DEVICE int slice_index(int r, int key) const { return rows[r] - i0 - key + kKeys - 1; }
  /// x = S_j - S_i of row r and a key of the tile.
  BAMTRAIN_DEVICE float difference(const float* slice, int r, int key) const {
    return slice[key] - sum[r];
  }
  /// The bias in base 2; of fire see fire_biases.
  BAMTRAIN_DEVICE float bias(const float* slice, int r, int key) const {
    if constexpr (kBias == BiasMode::table) {
      return slice[slice_index(r, key)];
    } else {
      return kSums<kBias> ? bias_of_sums<kBias>(difference(slice, r, key)) : 0.0f;
    }
  }
  /// Those that were formed of row r and the keys at j0, in base 2.
  BAMTRAIN_DEVICE void formed_biases(float (&bias)[kKeys / 8][2], const AttentionInputs<bf16>& a,
                                     int r, int j0, const Lane& l) const {
    const float* const of_row =
        a.formed.b + a.formed.row(static_cast<int64_t>(b) * a.H + h, rows[r]) + j0;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      const auto two = *reinterpret_cast<const TwoFloats*>(of_row + l.column(n, 0));
      bias[n][0] = kLog2e * two.x;
      bias[n][1] = kLog2e * two.y;
    }
  }
  /// logit() of row r.
  BAMTRAIN_DEVICE float logit_of(int r, float product, float bias) const {
    // Without a factor per row, for the registers.
    if (kScale == ScaleMode::rows) return t[r] * (product * score_factor) + u[r] * bias;
    return logit<kBias, kScale>(product, factor[r], t[r], bias);
  }
};

}  // namespace bamtrain::kernels
