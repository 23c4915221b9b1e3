#pragma once
// The second stage of sums over rows: adds partial sums, one slot each, to the total.

#include "arguments.h"
#include "device.cuh"

namespace bamtrain::kernels {

constexpr int kPartialWarps = 16;

/// out[c] += sum over p of partial[p columns + c], in an order that depends only on `pieces`.
/// Blocks with y = 1 do the same for `second` with the next `pieces` slots. Launch as
/// add_partial_sums does.
template <int kWarps>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps)
    sum_slots(float* out, float* second, const float* partial, int pieces, int64_t columns) {
  BAMTRAIN_SHARED(float, sums, kWarps * 32);
  const int thread = static_cast<int>(device::thread_index().x);
  const int warp = thread / 32, lane = thread % 32;
  const int64_t column = static_cast<int64_t>(device::block_index().x) * 32 + lane;
  const bool inside = column < columns;
  const float* slot = partial + device::block_index().y * pieces * columns + column;
  float sum = 0;
  if (inside) {
    for (int p = warp; p < pieces; p += kWarps) sum += slot[p * columns];
  }
  sums[thread] = sum;
  device::barrier();
  if (warp > 0 || !inside) return;
  BAMTRAIN_UNROLL
  for (int w = 1; w < kWarps; ++w) sum += sums[32 * w + lane];
  float* total = device::block_index().y == 0 ? out : second;
  total[column] += sum;
}

/// out (columns) += the sum of `pieces` slots of `columns` floats at `partial`; second
/// (columns) += the sum of the next `pieces` slots, unless it is null.
inline device::LaunchStatus add_partial_sums(float* out, float* second, const float* partial,
                                             int64_t pieces, int64_t columns,
                                             device::Stream stream) {
  device::Dim3 grid = grid_of(blocks_of(columns, 32));
  grid.y = second == nullptr ? 1 : 2;
  return device::launch(sum_slots<kPartialWarps>, grid, {32 * kPartialWarps, 1, 1}, 0, stream, out,
                        second, partial, pieces, columns);
}

}  // namespace bamtrain::kernels
