#pragma once
// Sums and maxima over a warp or a block: the same result in every lane, in a fixed order.

#include "device.cuh"

namespace bamtrain::kernels {

/// All lanes of the warp call. T: float or double.
template <class T>
BAMTRAIN_DEVICE T warp_sum(T x) {
  BAMTRAIN_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    x += device::shuffle_xor(device::kWholeWarp, x, distance);
  }
  return x;
}
BAMTRAIN_DEVICE float warp_max(float x) {
  BAMTRAIN_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    x = fmaxf(x, device::shuffle_xor(device::kWholeWarp, x, distance));
  }
  return x;
}

/// The sum of x[0], x[stride], ..., `count` elements. All lanes of the warp call.
BAMTRAIN_DEVICE double warp_sum_of(const double* x, int64_t count, int64_t stride = 1) {
  double sum = 0;
  for (int64_t n = device::thread_index().x % 32; n < count; n += 32) sum += x[n * stride];
  return warp_sum(sum);
}
/// Sums in element order, in one thread.
BAMTRAIN_DEVICE float sum_in_order(const float* x, int count, int64_t stride) {
  float sum = x[0];
  for (int n = 1; n < count; ++n) sum += x[n * stride];
  return sum;
}
/// Accumulates into a gradient: rounds once, after the sum.
BAMTRAIN_DEVICE void add_to(float* to, double x) {
  *to = static_cast<float>(static_cast<double>(*to) + x);
}

/// All threads of a one-dimensional block of kWarps warps call. `scratch`: kWarps elements of
/// shared memory; a barrier must separate the call from their earlier use.
template <int kWarps, class T>
BAMTRAIN_DEVICE T block_sum(T x, T (&scratch)[kWarps]) {
  const int thread = static_cast<int>(device::thread_index().x);
  x = warp_sum(x);
  if (thread % 32 == 0) scratch[thread / 32] = x;
  device::barrier();
  T total = scratch[0];
  BAMTRAIN_UNROLL
  for (int w = 1; w < kWarps; ++w) total += scratch[w];
  return total;
}
template <int kWarps>
BAMTRAIN_DEVICE float block_max(float x, float (&scratch)[kWarps]) {
  const int thread = static_cast<int>(device::thread_index().x);
  x = warp_max(x);
  if (thread % 32 == 0) scratch[thread / 32] = x;
  device::barrier();
  float highest = scratch[0];
  BAMTRAIN_UNROLL
  for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, scratch[w]);
  return highest;
}

}  // namespace bamtrain::kernels
