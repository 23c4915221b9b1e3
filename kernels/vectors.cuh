#pragma once
// 16 bytes of activations or parameters at a time, as floats.

#include "device.cuh"

namespace bamtrain::kernels {

using device::bf16;

/// Elements of A (float, bf16) in 16 bytes.
template <class A>
constexpr int kVector = 16 / static_cast<int>(sizeof(A));

struct alignas(16) Words {
  uint32_t w[4];
};

/// REQUIRES: `from` is aligned to 16 bytes, here and below.
BAMTRAIN_DEVICE void load_vector(float (&x)[4], const float* from) {
  const Words v = *reinterpret_cast<const Words*>(from);
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) x[n] = device::float_of(v.w[n]);
}
BAMTRAIN_DEVICE void load_vector(float (&x)[8], const bf16* from) {
  const Words v = *reinterpret_cast<const Words*>(from);
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) {
    x[2 * n] = device::low_bf16(v.w[n]);
    x[2 * n + 1] = device::high_bf16(v.w[n]);
  }
}
/// As many parameters as an activation vector has elements: two loads next to bf16.
BAMTRAIN_DEVICE void load_vector(float (&x)[8], const float* from) {
  const Words low = *reinterpret_cast<const Words*>(from);
  const Words high = *reinterpret_cast<const Words*>(from + 4);
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) {
    x[n] = device::float_of(low.w[n]);
    x[4 + n] = device::float_of(high.w[n]);
  }
}

BAMTRAIN_DEVICE void store_vector(float* to, const float (&x)[4]) {
  Words v;
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) v.w[n] = device::bits_of(x[n]);
  *reinterpret_cast<Words*>(to) = v;
}
BAMTRAIN_DEVICE void store_vector(bf16* to, const float (&x)[8]) {
  Words v;
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) v.w[n] = device::pack_bf16(x[2 * n], x[2 * n + 1]);
  *reinterpret_cast<Words*>(to) = v;
}

BAMTRAIN_DEVICE float load_one(const float* from) { return *from; }
BAMTRAIN_DEVICE float load_one(const bf16* from) { return device::to_float(*from); }
BAMTRAIN_DEVICE void store_one(float* to, float x) { *to = x; }
BAMTRAIN_DEVICE void store_one(bf16* to, float x) { *to = device::to_bf16(x); }

/// x after rounding to A.
template <class A>
BAMTRAIN_DEVICE float rounded_to(float x);
template <>
BAMTRAIN_DEVICE float rounded_to<float>(float x) {
  return x;
}
template <>
BAMTRAIN_DEVICE float rounded_to<bf16>(float x) {
  return device::to_float(device::to_bf16(x));
}

}  // namespace bamtrain::kernels
