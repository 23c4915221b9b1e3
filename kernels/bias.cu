#include "bias.h"
#include "matrix_tiles.cuh"
#include "partial_sums.cuh"

namespace bamtrain::kernels {

namespace {

template <class A>
const char* bias_refusal(const A* x, const float* vector, int64_t N, int64_t O, int64_t row) {
  if (N <= 0 || O <= 0) return "bias: a size is not positive";
  if (row % 8 != 0 || row < O) return "bias: rows begin at no multiple of 8, or within another";
  if (blocks_of(N, kMatrixWarps) > kMaxBlocks / column_tiles<A>(O)) return "bias: N O is too large";
  if (!aligned(x, vector)) return "bias: an address is not aligned to 16 bytes";
  return nullptr;
}

/// Loads a vector whose first `inside` elements exist; the rest is zero.
template <int kElements, class Element>
BAMTRAIN_DEVICE void load_inside(float (&x)[kElements], const Element* from, int64_t inside) {
  if (inside >= kElements) return load_vector(x, from);
  BAMTRAIN_UNROLL
  for (int n = 0; n < kElements; ++n) x[n] = n < inside ? load_one(from + n) : 0.0f;
}

template <class A>
BAMTRAIN_DEVICE void store_inside(A* to, const float (&x)[kVector<A>], int64_t inside) {
  if (inside >= kVector<A>) return store_vector(to, x);
  BAMTRAIN_UNROLL
  for (int n = 0; n < kVector<A>; ++n) {
    if (n < inside) store_one(to + n, x[n]);
  }
}

}  // namespace

// --- y += bias ----------------------------------------------------------------------------------

constexpr int kBiasRows = 4;  // per thread

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kMatrixThreads)
    add_bias_tiles(A* y, const float* __restrict__ bias, int64_t N, int64_t O, int64_t stride,
                   uint32_t tiles) {
  const MatrixTile<A> tile(tiles);
  const int64_t inside = O - tile.column;
  if (inside <= 0) return;
  const int64_t row = tile.index * (kMatrixWarps * kBiasRows) + tile.warp;
  float b[kVector<A>], x[kBiasRows][kVector<A>];
  load_inside(b, bias + tile.column, inside);
  A* at = y + row * stride + tile.column;
  BAMTRAIN_UNROLL
  for (int k = 0; k < kBiasRows; ++k) {
    if (row + k * kMatrixWarps < N) load_inside(x[k], at + k * kMatrixWarps * stride, inside);
  }
  BAMTRAIN_UNROLL
  for (int k = 0; k < kBiasRows; ++k) {
    if (row + k * kMatrixWarps >= N) break;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) x[k][n] += b[n];
    store_inside(at + k * kMatrixWarps * stride, x[k], inside);
  }
}

template <class A>
device::LaunchStatus add_bias(const AddBias<A>& a, device::Stream stream) {
  const int64_t row = a.row > 0 ? a.row : a.O, tiles = column_tiles<A>(a.O);
  if (const char* why = bias_refusal(a.y, a.bias, a.N, a.O, row)) return device::refused(why);
  const int64_t blocks = blocks_of(a.N, kMatrixWarps * kBiasRows) * tiles;
  return device::launch(add_bias_tiles<A>, grid_of(blocks), {kMatrixThreads, 1, 1}, 0, stream, a.y,
                        a.bias, a.N, a.O, row, tiles);
}

// --- sums += column sums ------------------------------------------------------------------------

/// partial (pieces, O): sums over `rows` rows each.
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kMatrixThreads)
    sum_rows(float* partial, const A* x, int64_t N, int64_t O, int64_t stride, int64_t rows,
             uint32_t tiles) {
  constexpr int kBatch = 4;  // rows in flight
  constexpr int kColumns = 32 * kVector<A>;
  BAMTRAIN_SHARED(float, sums, kMatrixWarps* kColumns);
  const MatrixTile<A> tile(tiles);
  const int64_t begin = tile.index * rows, end = begin + rows < N ? begin + rows : N;
  const int64_t inside = O - tile.column;
  float sum[kVector<A>] = {};
  for (int64_t row = begin + tile.warp; inside > 0 && row < end; row += kBatch * kMatrixWarps) {
    float v[kBatch][kVector<A>] = {};
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      const int64_t r = row + k * kMatrixWarps;
      if (r < end) load_inside(v[k], x + r * stride + tile.column, inside);
    }
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; ++n) sum[n] += v[k][n];
    }
  }
  // Column n of a lane's vector goes to n 32 + lane: neighbouring lanes use neighbouring banks.
  BAMTRAIN_UNROLL
  for (int n = 0; n < kVector<A>; ++n) sums[tile.warp * kColumns + 32 * n + tile.lane] = sum[n];
  device::barrier();
  if (tile.warp > 0 || inside <= 0) return;
  BAMTRAIN_UNROLL
  for (int n = 0; n < kVector<A>; ++n) {
    BAMTRAIN_UNROLL
    for (int w = 1; w < kMatrixWarps; ++w) sum[n] += sums[w * kColumns + 32 * n + tile.lane];
    if (n < inside) partial[tile.index * O + tile.column + n] = sum[n];
  }
}

template <class A>
device::LaunchStatus column_sums(const ColumnSums<A>& a, device::Stream stream) {
  const int64_t row = a.row > 0 ? a.row : a.O;
  if (const char* why = bias_refusal(a.x, a.sums, a.N, a.O, row)) return device::refused(why);
  const int64_t tiles = column_tiles<A>(a.O), pieces = column_sums_pieces(a.N, a.O);
  const device::LaunchStatus status =
      device::launch(sum_rows<A>, grid_of(pieces * tiles), {kMatrixThreads, 1, 1}, 0, stream,
                     a.partial, a.x, a.N, a.O, row, column_sums_rows(a.N, a.O), tiles);
  if (!status.ok()) return status;
  return add_partial_sums(a.sums, nullptr, a.partial, pieces, a.O, stream);
}

template device::LaunchStatus add_bias(const AddBias<float>&, device::Stream);
template device::LaunchStatus add_bias(const AddBias<bf16>&, device::Stream);
template device::LaunchStatus column_sums(const ColumnSums<float>&, device::Stream);
template device::LaunchStatus column_sums(const ColumnSums<bf16>&, device::Stream);

}  // namespace bamtrain::kernels
