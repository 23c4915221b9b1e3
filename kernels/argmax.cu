// One block per row: each thread keeps the best of every kArgmaxThreads-th element, then the block
// the best of its threads.

#include "argmax.h"
#include "arguments.h"
#include "device.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kArgmaxWarps = 8, kArgmaxThreads = 32 * kArgmaxWarps;
constexpr int64_t kArgmaxLimit = int64_t{1} << 30;

/// Ordered by larger value, then by earlier place. Place -1: no element yet.
struct Largest {
  float value;
  int place;

  BAMTRAIN_DEVICE void take(float other_value, int other_place) {
    if (other_place < 0) return;
    const bool better =
        place < 0 || other_value > value || (other_value == value && other_place < place);
    if (!better) return;
    value = other_value;
    place = other_place;
  }
};

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kArgmaxThreads)
    argmax_row(int32_t* places, const float* x, int V, int64_t x_row) {
  BAMTRAIN_SHARED(float, values, kArgmaxWarps);
  BAMTRAIN_SHARED(int, best, kArgmaxWarps);
  const int thread = static_cast<int>(device::thread_index().x);
  const int64_t r = device::block_index().x;
  const float* const row = x + r * x_row;
  Largest own = {0.0f, -1};
  for (int v = thread; v < V; v += kArgmaxThreads) {
    const float y = row[v];
    if (y == y) own.take(y, v);
  }
  BAMTRAIN_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    const float value = device::shuffle_xor(device::kWholeWarp, own.value, distance);
    const int place = device::shuffle_xor(device::kWholeWarp, own.place, distance);
    own.take(value, place);
  }
  if (thread % 32 == 0) {
    values[thread / 32] = own.value;
    best[thread / 32] = own.place;
  }
  device::barrier();
  if (thread != 0) return;
  for (int w = 1; w < kArgmaxWarps; ++w) own.take(values[w], best[w]);
  places[r] = own.place < 0 ? 0 : own.place;
}

}  // namespace

LaunchStatus argmax(int32_t* places, const float* x, int64_t R, int64_t V, int64_t x_row,
                    Stream stream) {
  if (R < 1 || R > kArgmaxLimit) return device::refused("argmax: R rows, 1 to 2^30");
  if (V < 1 || V > kArgmaxLimit) return device::refused("argmax: V elements, 1 to 2^30");
  if (x_row < V) return device::refused("argmax: x_row of at least V");
  if (places == nullptr || x == nullptr) return device::refused("argmax: places and x");
  return device::launch(argmax_row, grid_of(R), {kArgmaxThreads, 1, 1}, 0, stream, places, x,
                        static_cast<int>(V), x_row);
}

}  // namespace bamtrain::kernels
