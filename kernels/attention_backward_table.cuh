#pragma once
// The last kernel of the backward pass of attention: partial sums, in order, to dtable or dfire.
// The same for every head dimension.

#include "attention.h"
#include "device.cuh"

namespace bamtrain::kernels {

/// Values that a block joins, one of a lane each, and the warps that share their slots.
constexpr int kJoinedValues = 32, kJoinWarps = 8;

/// In the first warp the sum of of_slot(0) .. of_slot(slots - 1), in an order that depends on their
/// number only. All threads of the block call.
template <class Sum, class Slot>
BAMTRAIN_DEVICE Sum join_slots(Sum (&sums)[kJoinWarps * kJoinedValues], int slots,
                               const Slot& of_slot) {
  const int thread = static_cast<int>(device::thread_index().x);
  Sum sum = 0;
  for (int n = thread / 32; n < slots; n += kJoinWarps) sum += of_slot(n);
  sums[thread] = sum;
  device::barrier();
  if (thread >= kJoinedValues) return sum;
  for (int w = 1; w < kJoinWarps; ++w) sum += sums[w * kJoinedValues + thread];
  return sum;
}

/// dtable is written, at `distances` distances from -behind on, the sum of slots b parts + part of
/// its head. Launch with grid (ceil(distances / kJoinedValues), H) and kJoinedValues kJoinWarps
/// threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kJoinedValues* kJoinWarps)
    attention_backward_table(float* dtable, int64_t dtable_head, const float* partial,
                             int64_t slot_floats, int B, int H, int distances, int behind,
                             int parts) {
  BAMTRAIN_SHARED(float, sums, kJoinWarps* kJoinedValues);
  const int thread = static_cast<int>(device::thread_index().x);
  const int n = static_cast<int>(device::block_index().x) * kJoinedValues + thread % 32;
  const int h = static_cast<int>(device::block_index().y);
  const float sum = join_slots(sums, n < distances ? B * parts : 0, [&](int of) {
    const int64_t slot = (static_cast<int64_t>(of / parts) * H + h) * parts + of % parts;
    return partial[slot * slot_floats + kTile - 1 + n];
  });
  if (thread < kJoinedValues && n < distances) dtable[h * dtable_head + n - behind] = sum;
}

/// dfire (H, kFirePartial) is written, the sum of partial (B, H, tiles, kFirePartial) in fp64.
/// Launch with grid (ceil(kFirePartial / kJoinedValues), H), as above.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kJoinedValues* kJoinWarps)
    attention_backward_fire(double* dfire, const float* partial, int B, int H, int tiles) {
  BAMTRAIN_SHARED(double, sums, kJoinWarps* kJoinedValues);
  const int thread = static_cast<int>(device::thread_index().x);
  const int value = static_cast<int>(device::block_index().x) * kJoinedValues + thread % 32;
  const int h = static_cast<int>(device::block_index().y);
  const double sum = join_slots(sums, value < kFirePartial ? B * tiles : 0, [&](int n) {
    const int64_t slot = (static_cast<int64_t>(n / tiles) * H + h) * tiles + n % tiles;
    return static_cast<double>(partial[slot * kFirePartial + value]);
  });
  if (thread < kJoinedValues && value < kFirePartial) dfire[h * kFirePartial + value] = sum;
}

}  // namespace bamtrain::kernels
