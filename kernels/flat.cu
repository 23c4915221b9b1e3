// Passes over flat arrays: a thread reads 64 bytes of an array at a time.

#include "arguments.h"
#include "flat.h"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kFlatWarps = 8, kFlatThreads = 32 * kFlatWarps;
constexpr int kFlatPerThread = 16;  // elements
constexpr int kFlatTile = kFlatPerThread * kFlatThreads;
static_assert(kFlatTile == kSquaresTile);

/// The first element of the thread's vector j in a tile, for vectors of kWidth elements.
template <int kWidth>
BAMTRAIN_DEVICE int64_t flat_vector(int64_t tile, int j) {
  return tile * kFlatTile +
         kWidth * (j * kFlatThreads + static_cast<int>(device::thread_index().x));
}

/// Calls f(i) for the thread's elements of the last tile, up to n.
template <class F>
BAMTRAIN_DEVICE void for_flat_remainder(int64_t tile, int64_t n, const F& f) {
  for (int64_t i = tile * kFlatTile + device::thread_index().x; i < n; i += kFlatThreads) f(i);
}

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads) add_tiles(A* dst, const A* src, int64_t n) {
  constexpr int kWidth = kVector<A>, kVectors = kFlatPerThread / kWidth;
  const int64_t tile = device::block_index().x;
  if ((tile + 1) * kFlatTile > n) {
    for_flat_remainder(
        tile, n, [&](int64_t i) { store_one(dst + i, load_one(dst + i) + load_one(src + i)); });
    return;
  }
  float a[kVectors][kWidth], b[kVectors][kWidth];
  BAMTRAIN_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    load_vector(a[j], dst + flat_vector<kWidth>(tile, j));
    load_vector(b[j], src + flat_vector<kWidth>(tile, j));
  }
  BAMTRAIN_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    BAMTRAIN_UNROLL
    for (int l = 0; l < kWidth; ++l) a[j][l] += b[j][l];
    store_vector(dst + flat_vector<kWidth>(tile, j), a[j]);
  }
}

/// For the few fp64 values: one element per thread.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    add_doubles(double* dst, const double* src, int64_t n) {
  const int64_t i =
      static_cast<int64_t>(device::block_index().x) * kFlatThreads + device::thread_index().x;
  if (i < n) dst[i] += src[i];
}

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    convert_tiles(A* dst, const float* src, int64_t n) {
  constexpr int kWidth = kVector<A>, kVectors = kFlatPerThread / kWidth;
  const int64_t tile = device::block_index().x;
  if ((tile + 1) * kFlatTile > n) {
    for_flat_remainder(tile, n, [&](int64_t i) { store_one(dst + i, src[i]); });
    return;
  }
  float x[kVectors][kWidth];
  BAMTRAIN_UNROLL
  for (int j = 0; j < kVectors; ++j) load_vector(x[j], src + flat_vector<kWidth>(tile, j));
  BAMTRAIN_UNROLL
  for (int j = 0; j < kVectors; ++j) store_vector(dst + flat_vector<kWidth>(tile, j), x[j]);
}

/// squares[block]: of the block's tile.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    square_tiles(double* squares, const float* x, int64_t n) {
  BAMTRAIN_SHARED(double, sums, kFlatWarps);
  constexpr int kVectors = kFlatPerThread / 4;
  double lanes[4] = {};
  const int64_t tile = device::block_index().x;
  if ((tile + 1) * kFlatTile > n) {
    for_flat_remainder(tile, n, [&](int64_t i) {
      lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    });
  } else {
    float v[kVectors][4];
    BAMTRAIN_UNROLL
    for (int j = 0; j < kVectors; ++j) load_vector(v[j], x + flat_vector<4>(tile, j));
    BAMTRAIN_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      BAMTRAIN_UNROLL
      for (int l = 0; l < 4; ++l) {
        lanes[l] += static_cast<double>(v[j][l]) * static_cast<double>(v[j][l]);
      }
    }
  }
  const double sum = block_sum<kFlatWarps>((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), sums);
  if (device::thread_index().x == 0) squares[tile] = sum;
}

/// One block. Several elements of a thread are read at a time.
template <class X>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    sum_elements(double* total, const X* x, int64_t n) {
  BAMTRAIN_SHARED(double, sums, kFlatWarps);
  constexpr int kAtOnce = 8;
  double sum = 0;
  int64_t i = device::thread_index().x;
  for (; i + (kAtOnce - 1) * kFlatThreads < n; i += kAtOnce * kFlatThreads) {
    X v[kAtOnce];
    BAMTRAIN_UNROLL
    for (int j = 0; j < kAtOnce; ++j) v[j] = x[i + j * kFlatThreads];
    BAMTRAIN_UNROLL
    for (int j = 0; j < kAtOnce; ++j) sum += static_cast<double>(v[j]);
  }
  for (; i < n; i += kFlatThreads) sum += static_cast<double>(x[i]);
  sum = block_sum<kFlatWarps>(sum, sums);
  if (device::thread_index().x == 0) *total += sum;
}

bool is_flat_size(int64_t n) { return n >= 0 && n <= kMaxBlocks * kFlatTile; }

}  // namespace

template <class A>
LaunchStatus add(A* dst, const A* src, int64_t n, Stream stream) {
  if (!is_flat_size(n)) return device::refused("add: n of at least 0");
  if (!aligned(dst, src)) {
    return device::refused("add: arrays aligned to 16 bytes");
  }
  if (n == 0) return {};
  return device::launch(add_tiles<A>, grid_of(blocks_of(n, kFlatTile)), {kFlatThreads, 1, 1}, 0,
                        stream, dst, src, n);
}
LaunchStatus add(double* dst, const double* src, int64_t n, Stream stream) {
  if (!is_flat_size(n)) return device::refused("add: n of at least 0");
  if (!aligned(dst, src)) {
    return device::refused("add: arrays aligned to 16 bytes");
  }
  if (n == 0) return {};
  return device::launch(add_doubles, grid_of(blocks_of(n, kFlatThreads)), {kFlatThreads, 1, 1}, 0,
                        stream, dst, src, n);
}

template <class A>
LaunchStatus convert(A* dst, const float* src, int64_t n, Stream stream) {
  if (!is_flat_size(n)) return device::refused("convert: n of at least 0");
  if (!aligned(dst, src)) {
    return device::refused("convert: arrays aligned to 16 bytes");
  }
  if (n == 0) return {};
  return device::launch(convert_tiles<A>, grid_of(blocks_of(n, kFlatTile)), {kFlatThreads, 1, 1}, 0,
                        stream, dst, src, n);
}

LaunchStatus squares(double* squares, const float* x, int64_t n, Stream stream) {
  if (!is_flat_size(n)) return device::refused("squares: n of at least 0");
  if (!aligned(x)) return device::refused("squares: x aligned to 16 bytes");
  if (n == 0) return {};
  return device::launch(square_tiles, grid_of(blocks_of(n, kFlatTile)), {kFlatThreads, 1, 1}, 0,
                        stream, squares, x, n);
}

template <class X>
LaunchStatus sum(double* total, const X* x, int64_t n, Stream stream) {
  if (n < 0) return device::refused("sum: n of at least 0");
  return device::launch(sum_elements<X>, {1, 1, 1}, {kFlatThreads, 1, 1}, 0, stream, total, x, n);
}

template LaunchStatus add(float*, const float*, int64_t, Stream);
template LaunchStatus add(bf16*, const bf16*, int64_t, Stream);
template LaunchStatus convert<float>(float*, const float*, int64_t, Stream);
template LaunchStatus convert<bf16>(bf16*, const float*, int64_t, Stream);
template LaunchStatus sum(double*, const float*, int64_t, Stream);
template LaunchStatus sum(double*, const double*, int64_t, Stream);

}  // namespace bamtrain::kernels
