#pragma once
// The last kernel of the backward pass of attention: partial tables, in order, to dtable. The same
// for every head dimension.

#include "attention.h"
#include "device.cuh"

namespace bamtrain::kernels {

/// Distances of one block, and the warps that share its slots.
constexpr int kTableDistances = 32, kTableWarps = 8;

/// dtable (H, T) is written, the sum of slots b parts + part of its head in an order that depends
/// on their number only. Launch with grid (ceil(T / kTableDistances), H) and kTableDistances
/// kTableWarps threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kTableDistances* kTableWarps)
    attention_backward_table(float* dtable, int64_t dtable_head, const float* partial,
                             int64_t slot_floats, int B, int H, int T, int parts) {
  BAMTRAIN_SHARED(float, sums, kTableWarps* kTableDistances);
  const int thread = static_cast<int>(device::thread_index().x);
  const int d = static_cast<int>(device::block_index().x) * kTableDistances + thread % 32;
  const int h = static_cast<int>(device::block_index().y);
  float sum = 0;
  if (d < T) {
    for (int n = thread / 32; n < B * parts; n += kTableWarps) {
      const int64_t slot = (static_cast<int64_t>(n / parts) * H + h) * parts + n % parts;
      sum += partial[slot * slot_floats + kTile - 1 + d];
    }
  }
  sums[thread] = sum;
  device::barrier();
  if (thread >= kTableDistances || d >= T) return;
  for (int w = 1; w < kTableWarps; ++w) sum += sums[w * kTableDistances + thread];
  dtable[h * dtable_head + d] = sum;
}

}  // namespace bamtrain::kernels
