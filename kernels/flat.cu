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

/// partial[block]: the sum of squares of tiles block, block + blocks, ...
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    sum_squares(double* partial, const float* x, int64_t n) {
  BAMTRAIN_SHARED(double, sums, kFlatWarps);
  constexpr int kVectors = kFlatPerThread / 4;
  double lanes[4] = {};
  for (int64_t tile = device::block_index().x; tile * kFlatTile < n;
       tile += device::grid_size().x) {
    if ((tile + 1) * kFlatTile > n) {
      for_flat_remainder(tile, n, [&](int64_t i) {
        lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      });
      break;
    }
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
  if (device::thread_index().x == 0) partial[device::block_index().x] = sum;
}

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFlatThreads)
    join_squares(double* result, const double* partial, int count) {
  BAMTRAIN_SHARED(double, sums, kFlatWarps);
  double sum = 0;
  for (int i = static_cast<int>(device::thread_index().x); i < count; i += kFlatThreads) {
    sum += partial[i];
  }
  sum = block_sum<kFlatWarps>(sum, sums);
  if (device::thread_index().x == 0) *result = sum;
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

LaunchStatus squared_norm(double* result, double* scratch, const float* x, int64_t n,
                          Stream stream) {
  if (!is_flat_size(n)) return device::refused("squared_norm: n of at least 0");
  if (!aligned(x)) return device::refused("squared_norm: x aligned to 16 bytes");
  const int64_t tiles = blocks_of(n, kFlatTile);
  const int64_t blocks = tiles < kSquaredNormScratch ? tiles : kSquaredNormScratch;
  if (blocks > 0) {
    const LaunchStatus status = device::launch(sum_squares, grid_of(blocks), {kFlatThreads, 1, 1},
                                               0, stream, scratch, x, n);
    if (!status.ok()) return status;
  }
  return device::launch(join_squares, {1, 1, 1}, {kFlatThreads, 1, 1}, 0, stream, result, scratch,
                        static_cast<int>(blocks));
}

template LaunchStatus add(float*, const float*, int64_t, Stream);
template LaunchStatus add(bf16*, const bf16*, int64_t, Stream);
template LaunchStatus convert<float>(float*, const float*, int64_t, Stream);
template LaunchStatus convert<bf16>(bf16*, const float*, int64_t, Stream);

}  // namespace bamtrain::kernels
