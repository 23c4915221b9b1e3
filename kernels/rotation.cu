#include "arguments.h"
#include "rotation.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

constexpr int kRotationThreads = 256;

template <class A, int kCount>
BAMTRAIN_DEVICE void load_elements(float (&x)[kCount], const A* from) {
  if constexpr (kCount == 1) {
    x[0] = load_one(from);
  } else {
    load_vector(x, from);
  }
}
template <class A, int kCount>
BAMTRAIN_DEVICE void store_elements(A* to, const float (&x)[kCount]) {
  if constexpr (kCount == 1) {
    store_one(to, x[0]);
  } else {
    store_vector(to, x);
  }
}

/// A thread rotates kCount neighbouring pairs of one head at a time. Launch with one block per
/// `tokens` rows.
template <class A, int kCount>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kRotationThreads)
    rotate_tokens(A* x, int64_t batch, int64_t row, int64_t head, uint32_t rows, uint32_t T,
                  uint32_t heads, uint32_t half, uint32_t tokens,
                  const int32_t* __restrict__ positions, const float* __restrict__ cosine,
                  const float* __restrict__ sine, float sign) {
  const uint32_t per_head = half / kCount, per_token = heads * per_head;
  const uint32_t first = device::block_index().x * tokens;
  const uint32_t count = rows - first < tokens ? rows - first : tokens;
  for (uint32_t i = device::thread_index().x; i < count * per_token; i += kRotationThreads) {
    const uint32_t n = first + i / per_token, h = i % per_token / per_head;
    const uint32_t c = i % per_head * kCount;  // per_head divides per_token
    A* low = x + n / T * batch + n % T * row + h * head + c;
    A* high = low + half;
    const int64_t angle = static_cast<int64_t>(positions[n]) * half + c;
    float a[kCount], b[kCount], cs[kCount], sn[kCount];
    load_elements(a, low);
    load_elements(b, high);
    load_elements(cs, cosine + angle);
    load_elements(sn, sine + angle);
    BAMTRAIN_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const float s = sign * sn[k], rotated = a[k] * cs[k] - b[k] * s;
      b[k] = b[k] * cs[k] + a[k] * s;
      a[k] = rotated;
    }
    store_elements(low, a);
    store_elements(high, b);
  }
}

template <class A>
device::LaunchStatus rotate(const Rotation<A>& r, device::Stream stream) {
  if (r.B <= 0 || r.T <= 0 || r.heads <= 0 || r.D <= 0) {
    return device::refused("rotation: a size is not positive");
  }
  if (r.D % 2 != 0) return device::refused("rotation: D is odd");
  const int64_t rows = static_cast<int64_t>(r.B) * r.T, half = r.D / 2;
  if (rows > kMaxBlocks) return device::refused("rotation: B T is too large");
  if (r.heads > kMaxBlocks / kRotationThreads / half) {
    return device::refused("rotation: heads D is too large");
  }
  const auto start = [&]<int kCount>() {
    const int64_t per_token = r.heads * half / kCount;
    const int64_t tokens = per_token < kRotationThreads ? kRotationThreads / per_token : 1;
    return device::launch(rotate_tokens<A, kCount>, grid_of(blocks_of(rows, tokens)),
                          {kRotationThreads, 1, 1}, 0, stream, r.x, r.batch, r.row, r.head, rows,
                          r.T, r.heads, half, tokens, r.positions, r.cosine, r.sine,
                          r.inverse ? -1.0f : 1.0f);
  };
  constexpr int kWhole = kVector<A>;
  const bool vectors = half % kWhole == 0 && r.batch % kWhole == 0 && r.row % kWhole == 0 &&
                       r.head % kWhole == 0 && aligned(r.x, r.cosine, r.sine);
  return vectors ? start.template operator()<kWhole>() : start.template operator()<1>();
}

template device::LaunchStatus rotate(const Rotation<float>&, device::Stream);
template device::LaunchStatus rotate(const Rotation<bf16>&, device::Stream);

}  // namespace bamtrain::kernels
