#pragma once
// What the attention kernels share: arguments, tiles in shared memory and products of tiles. bf16
// operands on tensor cores, or fp32 ones in the same layout of accumulators; fp32 accumulation,
// sm_80 and later.
//
// A block has four warps; a warp owns one or two tiles of 16 rows of a product. Of two, each
// operand that is read from shared memory serves both: an ldmatrix of four 8 x 8 matrices takes as
// long as two to four products of tensor cores, and feeds two of them for each tile.
//
// Tiles lie in shared memory with 16 bytes of padding per row: the eight rows that one ldmatrix
// reads then start in eight different groups of four banks, for every D that is a multiple of 16. D
// = 48 costs 48.

#include <type_traits>

#include "attention_weights.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

using device::SharedAddress;

constexpr int kThreads = 128;
constexpr int kWarpRows = 16;
constexpr int kSlice = kThreads;  // of biases, in backward_keys: >= kTile + queries per tile - 1

template <class Element>
BAMTRAIN_DEVICE Element* row_of(const Rows<Element>& x, int b, int t, int h) {
  return x.data + b * x.batch + t * x.row + h * x.head;
}

struct alignas(8) TwoFloats {
  float x, y;
};

/// Bytes from one row of a tile to the next.
template <int D, class A = bf16>
constexpr uint32_t kRowBytes = sizeof(A) * D + 16;
template <int D, int kRows = kTile, class A = bf16>
constexpr uint32_t kTileBytes = kRows* kRowBytes<D, A>;

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
template <int D, int kRows = kTile, class A>
BAMTRAIN_DEVICE void copy_tile(SharedAddress to, const Rows<const A>& x, int b, int h, int t0,
                               int T) {
  constexpr int kChunks = D / kVector<A>;  // of 16 bytes
  BAMTRAIN_NO_UNROLL
  for (int n = static_cast<int>(device::thread_index().x); n < kRows * kChunks; n += kThreads) {
    const int r = n / kChunks, c = n % kChunks, t = t0 + r;
    device::copy_async_16(to + static_cast<uint32_t>(r) * kRowBytes<D, A> + 16u * c,
                          row_of(x, b, t < T ? t : 0, h) + kVector<A> * c, t < T);
  }
}

/// As copy_tile(), in fewer instructions and more registers: a thread has every kStep-th row.
/// `head`: row_of(x, b, 0, h).
template <int D, int kRows = kTile, class A>
BAMTRAIN_DEVICE void copy_tile_by_rows(SharedAddress to, const Rows<const A>& x, const A* head,
                                       int t0, int T) {
  constexpr int kChunks = D / kVector<A>, kStep = kThreads / kChunks;
  if constexpr (kThreads % kChunks != 0 || kRows % kStep != 0) {
    copy_tile<D, kRows>(to, Rows<const A>{head, 0, x.row, 0}, 0, 0, t0, T);
  } else {
    const int thread = static_cast<int>(device::thread_index().x);
    const int first = thread / kChunks, c = thread % kChunks;
    const A* from = head + (t0 + first) * x.row + kVector<A> * c;
    to += static_cast<uint32_t>(first) * kRowBytes<D, A> + 16u * static_cast<uint32_t>(c);
    if (t0 + kRows <= T) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; r += kStep) {
        device::copy_async_16(to, from);
        from += kStep * x.row;
        to += kStep * kRowBytes<D, A>;
      }
    } else {
      BAMTRAIN_NO_UNROLL
      for (int r = 0; r < kRows; r += kStep) {
        const bool inside = t0 + first + r < T;
        device::copy_async_16(to, inside ? from : x.data, inside);
        from += kStep * x.row;
        to += kStep * kRowBytes<D, A>;
      }
    }
  }
}

/// Columns 2 `pair` and 2 `pair` + 1 of the n-th eight columns of a row.
BAMTRAIN_DEVICE TwoFloats load_pair(const bf16* row, int n, const Lane& l) {
  const uint32_t two = reinterpret_cast<const uint32_t*>(row)[4 * n + l.pair];
  return {device::low_bf16(two), device::high_bf16(two)};
}
BAMTRAIN_DEVICE TwoFloats load_pair(const float* row, int n, const Lane& l) {
  return reinterpret_cast<const TwoFloats*>(row)[4 * n + l.pair];
}
BAMTRAIN_DEVICE void store_pair(bf16* row, int n, const Lane& l, float x, float y) {
  reinterpret_cast<uint32_t*>(row)[4 * n + l.pair] = device::pack_bf16(x, y);
}
BAMTRAIN_DEVICE void store_pair(float* row, int n, const Lane& l, float x, float y) {
  device::store_two(row + 8 * n + 2 * l.pair, x, y);
}

BAMTRAIN_DEVICE void load_four(float (&x)[4], SharedAddress at) {
  const Words v = device::load_shared<Words>(at);
  BAMTRAIN_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = device::float_of(v.w[k]);
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

/// The same of fp32: A (16, 8 S) is an accumulator. Its columns are those of the four lanes of a
/// row in turn.
template <int D, int M, int N, int S>
BAMTRAIN_DEVICE void multiply(float (&c)[M][N][4], const float (&a)[M][S][4], SharedAddress x,
                              const Lane& l) {
  x += static_cast<uint32_t>(sizeof(TwoFloats)) * static_cast<uint32_t>(l.pair);
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int j = 0; j < 8; ++j) {
      float own[2 * M];
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2 * M; ++r) {
        own[r] = device::shuffle(device::kWholeWarp, a[r / 2][s][r % 2 * 2 + j % 2],
                                 l.lane - l.pair + j / 2);
      }
      BAMTRAIN_UNROLL
      for (int n = 0; n < N; ++n) {
        const auto b = device::load_shared<TwoFloats>(
            x + static_cast<uint32_t>(8 * s + j) * kRowBytes<D, float> + 32u * n);
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2 * M; ++r) {
          float* const to = c[r / 2][n] + r % 2 * 2;
          to[0] = fmaf(own[r], b.x, to[0]);
          to[1] = fmaf(own[r], b.y, to[1]);
        }
      }
    }
  }
}

/// For each of M row tiles c (16, 8 N) += A X^T for the step-th 16 columns of A (16, D), a tile
/// from rows(m) on, and of X (8 N, D), a tile.
template <int D, class A, int M, int N, class RowsOf>
BAMTRAIN_DEVICE void multiply_step(float (&c)[M][N][4], const RowsOf& rows, SharedAddress x,
                                   int step, const Lane& l) {
  if constexpr (std::is_same_v<A, bf16>) {
    uint32_t a[M][4];
    BAMTRAIN_UNROLL
    for (int m = 0; m < M; ++m) load_a<D>(a[m], rows(m), step, l);
    multiply_transposed<D>(c, a, x, step, l);
  } else {
    constexpr uint32_t kRow = kRowBytes<D, float>;
    BAMTRAIN_UNROLL
    for (int part = 0; part < 4; ++part) {
      const uint32_t column = 16u * static_cast<uint32_t>(4 * step + part);
      float a[2 * M][4];
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2 * M; ++r) {
        load_four(a[r], rows(r / 2) + static_cast<uint32_t>(l.row + r % 2 * 8) * kRow + column);
      }
      BAMTRAIN_UNROLL
      for (int n = 0; n < N; ++n) {
        BAMTRAIN_UNROLL
        for (int e = 0; e < 2; ++e) {
          float b[4];
          load_four(b, x + static_cast<uint32_t>(l.column(n, e)) * kRow + column);
          BAMTRAIN_UNROLL
          for (int r = 0; r < 2 * M; ++r) {
            float& to = c[r / 2][n][r % 2 * 2 + e];
            BAMTRAIN_UNROLL
            for (int k = 0; k < 4; ++k) to = fmaf(a[r][k], b[k], to);
          }
        }
      }
    }
  }
}

/// An accumulator (16, 8 N) as an operand A (16, 8 N).
template <class A, int N>
using Operand = std::conditional_t<std::is_same_v<A, bf16>, uint32_t[N / 2][4], float[N][4]>;

/// Rounded to bf16.
template <int N>
BAMTRAIN_DEVICE void as_operand(uint32_t (&a)[N / 2][4], const float (&c)[N][4]) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    a[n / 2][n % 2 * 2] = device::pack_bf16(c[n][0], c[n][1]);
    a[n / 2][n % 2 * 2 + 1] = device::pack_bf16(c[n][2], c[n][3]);
  }
}

/// As it is.
template <int N>
BAMTRAIN_DEVICE void as_operand(float (&a)[N][4], const float (&c)[N][4]) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    BAMTRAIN_UNROLL
    for (int e = 0; e < 4; ++e) a[n][e] = c[n][e];
  }
}
/// Bits of the elements of an operand, all 0 where these are.
BAMTRAIN_DEVICE uint32_t bits_of(uint32_t two) { return two; }
BAMTRAIN_DEVICE uint32_t bits_of(float x) { return device::bits_of(x); }

/// Row tiles of queries that a warp owns in the kernels of one block per tile of queries. At larger
/// head dimensions registers do not hold two.
template <int D, class A = bf16>
constexpr int kQueryTile = attention_query_rows(D, sizeof(A));
template <int D, class A = bf16>
constexpr int kRowTiles = kQueryTile<D, A> / 64;

}  // namespace bamtrain::kernels
