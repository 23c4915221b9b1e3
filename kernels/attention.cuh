#pragma once
// What the attention kernels share: arguments, tiles in shared memory, products of tiles and the
// form of a logit. bf16 operands, fp32 accumulation, sm_80 and later.
//
// A block has four warps; a warp owns 16 rows of a product. Tiles of 64 rows lie in shared memory
// with 16 bytes of padding per row: the eight rows that one ldmatrix reads then start in eight
// different groups of four banks, for every D that is a multiple of 16. D = 48 costs 48.

#include "device.cuh"

namespace bamtrain::kernels {

using device::bf16;
using device::SharedAddress;

enum class ScaleMode { none, content, both };  // z = s + b;  t s + b;  t (s + b)

/// A (B, T, heads, D) tensor: strides in elements, all multiples of 8, the innermost dimension
/// contiguous, data aligned to 16 bytes.
template <class Element>
struct Rows {
  Element* data;
  int64_t batch, row, head;

  BAMTRAIN_DEVICE Element* at(int b, int t, int h) const {
    return data + b * batch + t * row + h * head;
  }
};

/// See Attention in ops/ops.h for the mathematics.
struct AttentionInputs {
  Rows<const bf16> q, k, v;
  const float* table;        // (H, >= T): b at (h, i - j); with kTable
  int64_t table_head;        // distance between its rows
  const float* scale;        // (B, H, T): t; with ScaleMode other than none
  const int32_t* first_key;  // (B, T)
  int T, H, group;           // group = H / K: query heads per key head
};

constexpr int kTile = 64;  // queries and keys per tile
constexpr int kThreads = 128;
constexpr int kWarpRows = 16;
constexpr float kLog2e = 1.44269504f;
constexpr float kLn2 = 0.69314718f;
constexpr float kMinusInfinity = -INFINITY;

/// Bytes from one row of a tile to the next.
template <int D>
constexpr uint32_t kRowBytes = 2 * D + 16;
template <int D, int kRows = kTile>
constexpr uint32_t kTileBytes = kRows* kRowBytes<D>;

/// 1 / sqrt(D), times log2(e).
template <int D>
BAMTRAIN_DEVICE float score_factor() {
  return kLog2e / sqrtf(static_cast<float>(D));
}

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
                          x.at(b, t < T ? t : 0, h) + 8 * c, t < T);
  }
}

/// The 16 x 16 operand A at rows `rows` and columns [16 step, 16 step + 16).
template <int D>
BAMTRAIN_DEVICE void load_a(uint32_t (&a)[4], SharedAddress rows, int step, const Lane& l) {
  device::ldmatrix(a, rows + static_cast<uint32_t>(l.lane % 16) * kRowBytes<D> +
                          16u * static_cast<uint32_t>(2 * step + l.lane / 16));
}

/// c (16, 8 N) += A X^T for the step-th 16 columns of A (16, D) and of X (8 N, D), a tile.
template <int D, int N>
BAMTRAIN_DEVICE void multiply_transposed(float (&c)[N][4], const uint32_t (&a)[4], SharedAddress x,
                                         int step, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N / 2; ++n) {
    const int row = 16 * n + l.lane % 8 + l.lane / 16 * 8, chunk = 2 * step + l.lane / 8 % 2;
    uint32_t b[4];
    device::ldmatrix(
        b, x + static_cast<uint32_t>(row) * kRowBytes<D> + 16u * static_cast<uint32_t>(chunk));
    device::mma_m16n8k16(c[2 * n], a, b[0], b[1]);
    device::mma_m16n8k16(c[2 * n + 1], a, b[2], b[3]);
  }
}

/// c (16, D) += A X for A (16, 16 S) in registers and X (16 S, D), a tile.
template <int D, int S>
BAMTRAIN_DEVICE void multiply(float (&c)[D / 8][4], const uint32_t (&a)[S][4], SharedAddress x,
                              const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 16; ++n) {
      uint32_t b[4];
      device::ldmatrix_transposed(b,
                                  x + static_cast<uint32_t>(16 * s + l.lane % 16) * kRowBytes<D> +
                                      16u * static_cast<uint32_t>(2 * n + l.lane / 16));
      device::mma_m16n8k16(c[2 * n], a[s], b[0], b[1]);
      device::mma_m16n8k16(c[2 * n + 1], a[s], b[2], b[3]);
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

/// The logit in base 2 from a raw product <q, k>, given t, factor = score_factor and the bias in
/// base 2.
template <bool kTable, ScaleMode kScale>
BAMTRAIN_DEVICE float logit(float product, float factor, float t, float bias) {
  float z = product * factor;
  if (kScale == ScaleMode::both) return t * (kTable ? z + bias : z);
  if (kScale == ScaleMode::content) z *= t;
  return kTable ? z + bias : z;
}

/// The bias in base 2 at distance d, zero outside the table.
BAMTRAIN_DEVICE float bias_at(const AttentionInputs& a, int h, int d) {
  return d >= 0 && d < a.T ? a.table[h * a.table_head + d] * kLog2e : 0.0f;
}

}  // namespace bamtrain::kernels
