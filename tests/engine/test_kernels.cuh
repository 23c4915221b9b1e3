#pragma once
// Correct kernels that resemble the backend's: a reduction over a block, and a tiled product of
// bf16 matrices with copies two tiles ahead.

#include "kernels/device.cuh"

namespace bamtrain::test_kernels {

using device::bf16;

/// out[b] = sum of the b-th segment of `per_block` elements of x, which has n elements.
BAMTRAIN_KERNEL block_sum(const float* x, float* out, int n, int per_block) {
  BAMTRAIN_SHARED(float, of_warp, 32);
  const int thread = static_cast<int>(device::thread_index().x);
  const int threads = static_cast<int>(device::block_size().x);
  const int begin = static_cast<int>(device::block_index().x) * per_block;
  const int end = begin + per_block < n ? begin + per_block : n;
  float sum = 0.0f;
  for (int i = begin + thread; i < end; i += threads) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += device::shuffle_xor(device::kWholeWarp, sum, d);
  if (thread % 32 == 0) of_warp[thread / 32] = sum;
  device::barrier();
  if (thread == 0) {
    float total = 0.0f;
    for (int w = 0; w < threads / 32; ++w) total += of_warp[w];
    out[device::block_index().x] = total;
  }
}

constexpr int kTile = 64;   // rows and columns per block of the product
constexpr int kDepth = 32;  // per step
constexpr int kChunks = kDepth / 8;
constexpr uint32_t kTileBytes = kTile * kDepth * 2;
constexpr size_t kProductSharedBytes = 4 * kTileBytes;

/// Permutes 16-byte chunks within a row so that ldmatrix accesses every bank once.
BAMTRAIN_DEVICE uint32_t chunk_offset(int row, int chunk) {
  return static_cast<uint32_t>(row * kDepth * 2 + ((chunk ^ (row / 2 % kChunks)) << 4));
}

/// Loads rows row0.. and columns column0.. of x (rows, K); zero outside.
BAMTRAIN_DEVICE void load_tile(device::SharedAddress to, const bf16* x, int row0, int column0,
                               int rows, int K) {
  for (int c = static_cast<int>(device::thread_index().x); c < kTile * kChunks; c += 128) {
    const int row = c / kChunks, chunk = c % kChunks;
    const bool inside = row0 + row < rows && column0 + chunk * 8 < K;
    const size_t from = inside ? static_cast<size_t>(row0 + row) * static_cast<size_t>(K) +
                                     static_cast<size_t>(column0 + chunk * 8)
                               : 0;
    device::copy_async_16(to + chunk_offset(row, chunk), x + from, inside);
  }
}

/// c (M, N) f32 = a (M, K) times the transpose of b (N, K), both bf16. Blocks have 128 threads, one
/// block per tile. REQUIRES: K is a multiple of 8.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(128)
    matrix_product(const bf16* a, const bf16* b, float* c, int M, int N, int K) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const device::SharedAddress tiles = device::shared_address(shared);  // a, b, a, b
  const int thread = static_cast<int>(device::thread_index().x);
  const int lane = thread % 32, warp = thread / 32;
  const int row0 = static_cast<int>(device::block_index().y) * kTile;
  const int column0 = static_cast<int>(device::block_index().x) * kTile;
  const int steps = (K + kDepth - 1) / kDepth;
  float d[kTile / 8][4] = {};

  load_tile(tiles, a, row0, 0, M, K);
  load_tile(tiles + kTileBytes, b, column0, 0, N, K);
  device::copy_async_commit();
  for (int step = 0; step < steps; ++step) {
    const device::SharedAddress now = tiles + static_cast<uint32_t>(step % 2) * 2 * kTileBytes;
    const device::SharedAddress next = tiles + static_cast<uint32_t>(1 - step % 2) * 2 * kTileBytes;
    if (step + 1 < steps) {
      load_tile(next, a, row0, (step + 1) * kDepth, M, K);
      load_tile(next + kTileBytes, b, column0, (step + 1) * kDepth, N, K);
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();
    BAMTRAIN_UNROLL
    for (int k = 0; k < kDepth / 16; ++k) {
      uint32_t of_a[4];
      device::ldmatrix(of_a, now + chunk_offset(warp * 16 + lane % 16, k * 2 + lane / 16));
      BAMTRAIN_UNROLL
      for (int n = 0; n < kTile / 16; ++n) {
        uint32_t of_b[4];
        device::ldmatrix(of_b,
                         now + kTileBytes +
                             chunk_offset(n * 16 + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2));
        device::mma_m16n8k16(d[2 * n], of_a, of_b[0], of_b[1]);
        device::mma_m16n8k16(d[2 * n + 1], of_a, of_b[2], of_b[3]);
      }
    }
    device::barrier();  // before the next step's copies overwrite what was read
  }
  device::copy_async_wait<0>();
  for (int n = 0; n < kTile / 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + warp * 16 + lane / 4 + i / 2 * 8;
      const int column = column0 + n * 8 + lane % 4 * 2 + i % 2;
      if (row < M && column < N) {
        c[static_cast<size_t>(row) * static_cast<size_t>(N) + static_cast<size_t>(column)] =
            d[n][i];
      }
    }
  }
}

}  // namespace bamtrain::test_kernels
