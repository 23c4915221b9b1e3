#pragma once
// One kernel per wrapper of kernels/device.cuh, for one warp. The engine runs them in the tests; a
// GPU runs the same source in record_wrappers.cu.

#include "kernels/device.cuh"

namespace bamtrain::wrappers {

using device::bits_of;
using device::float_of;
using device::kWholeWarp;

constexpr int kLanes = 32;
constexpr int kShuffles = 6;  // operands tried per shuffle
constexpr int kValues = 64;   // per lane, of the scalar functions

BAMTRAIN_DEVICE int lane() { return static_cast<int>(device::thread_index().x); }

/// in: one word per lane. out: (kShuffles, 32).
enum class Shuffle { exclusive_or, index, up, down };
template <Shuffle kKind>
BAMTRAIN_KERNEL shuffle_kernel(const uint32_t* in, uint32_t* out) {
  constexpr int kOperands[kShuffles] = {0, 1, 2, 7, 16, 31};
  const uint32_t own = in[lane()];
  for (int i = 0; i < kShuffles; ++i) {
    uint32_t* to = out + i * kLanes + lane();
    if constexpr (kKind == Shuffle::exclusive_or) {
      *to = device::shuffle_xor(kWholeWarp, own, kOperands[i]);
    } else if constexpr (kKind == Shuffle::index) {
      *to = device::shuffle(kWholeWarp, own, (lane() * kOperands[i] + 5) % kLanes);
    } else if constexpr (kKind == Shuffle::up) {
      *to = device::shuffle_up(kWholeWarp, own, kOperands[i]);
    } else {
      *to = device::shuffle_down(kWholeWarp, own, kOperands[i]);
    }
  }
}

/// in: one word per lane, whose lowest bit votes. out: (2, 32), ballots of all lanes and of half a
/// warp.
BAMTRAIN_KERNEL ballot_kernel(const uint32_t* in, uint32_t* out) {
  const bool vote = (in[lane()] & 1u) != 0;
  const uint32_t half = lane() < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  out[lane()] = device::ballot(kWholeWarp, vote);
  out[kLanes + lane()] = device::ballot(half, vote);
}

/// in: 32 rows of 8 16-bit elements. Lane l gives the address of row (11 l + 3) % 32.
/// out: (kMatrices, 32).
template <int kMatrices, bool kTransposed>
BAMTRAIN_KERNEL ldmatrix_kernel(const uint32_t* in, uint32_t* out) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  auto* words = reinterpret_cast<uint32_t*>(shared);
  for (int i = 0; i < 4; ++i) words[i * kLanes + lane()] = in[i * kLanes + lane()];
  device::barrier();
  const device::SharedAddress row =
      device::shared_address(shared) + static_cast<uint32_t>((lane() * 11 + 3) % kLanes) * 16u;
  uint32_t r[kMatrices];
  if constexpr (kTransposed) {
    device::ldmatrix_transposed(r, row);
  } else {
    device::ldmatrix(r, row);
  }
  for (int m = 0; m < kMatrices; ++m) out[m * kLanes + lane()] = r[m];
}

/// in: registers of a (4, 32), b (2, 32) and d (4, 32). out: those of d (4, 32).
BAMTRAIN_KERNEL mma_kernel(const uint32_t* in, uint32_t* out) {
  uint32_t a[4], b[2];
  float d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i * kLanes + lane()];
  for (int i = 0; i < 2; ++i) b[i] = in[(4 + i) * kLanes + lane()];
  for (int i = 0; i < 4; ++i) d[i] = float_of(in[(6 + i) * kLanes + lane()]);
  device::mma_m16n8k16(d, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i) out[i * kLanes + lane()] = bits_of(d[i]);
}

/// in: (3, 32) chunks of 4 words, then a word per lane, whose bit g tells whether chunk g is
/// wanted. Each chunk is a separate group; the oldest is read while the others may be pending. out:
/// (3, 32) chunks.
BAMTRAIN_KERNEL copy_async_kernel(const uint32_t* in, uint32_t* out) {
  constexpr int kGroups = 3, kWords = 4;
  BAMTRAIN_SHARED(uint32_t, chunks, kGroups * kLanes * kWords + kWords);
  // The array has only its elements' alignment: the first chunk starts at a multiple of 16.
  const device::SharedAddress start = (device::shared_address(chunks) + 15u) & ~15u;
  const uint32_t skipped = (start - device::shared_address(chunks)) / 4u;
  const uint32_t wanted = in[kGroups * kLanes * kWords + lane()];
  for (int g = 0; g < kGroups; ++g) {
    const int chunk = g * kLanes + lane();
    device::copy_async_16(start + static_cast<uint32_t>(chunk) * 16u, in + chunk * kWords,
                          (wanted >> g & 1u) != 0);
    device::copy_async_commit();
  }
  for (int g = 0; g < kGroups; ++g) {
    if (g == 0) {
      device::copy_async_wait<2>();
    } else {
      device::copy_async_wait<0>();
    }
    device::sync_warp();
    // Another lane's chunk: after sync_warp, all lanes see what any thread has waited for.
    const uint32_t chunk = static_cast<uint32_t>(g * kLanes + (lane() ^ 1));
    for (uint32_t w = 0; w < kWords; ++w) {
      out[chunk * kWords + w] = chunks[skipped + chunk * kWords + w];
    }
  }
}

/// A launch with more than 48 KiB of shared memory, the smaller part of it dynamic. in: a word per
/// lane, which goes to the last words of both parts. out: (2, 32), the opposite lane's words.
constexpr uint32_t kFixedWords = 10 * 1024, kDynamicWords = 4 * 1024;
BAMTRAIN_KERNEL shared_kernel(const uint32_t* in, uint32_t* out) {
  BAMTRAIN_SHARED(uint32_t, fixed, kFixedWords);
  BAMTRAIN_DYNAMIC_SHARED(shared);
  auto* words = reinterpret_cast<uint32_t*>(shared);
  const auto back = static_cast<uint32_t>(lane()) + 1;
  fixed[kFixedWords - back] = in[lane()];
  words[kDynamicWords - back] = ~in[lane()];
  device::barrier();
  const uint32_t opposite = kLanes + 1 - back;
  out[lane()] = fixed[kFixedWords - opposite];
  out[kLanes + lane()] = words[kDynamicWords - opposite];
}

/// in, out: (kValues, 32) floats.
enum class Function { exp2, log2 };
template <Function kFunction>
BAMTRAIN_KERNEL function_kernel(const uint32_t* in, uint32_t* out) {
  for (int i = 0; i < kValues; ++i) {
    const float x = float_of(in[i * kLanes + lane()]);
    const float y = kFunction == Function::exp2 ? device::exp2_approx(x) : device::log2_approx(x);
    out[i * kLanes + lane()] = bits_of(y);
  }
}

/// in: (2 kValues, 32) floats, low halves first. out: (kValues, 32) pairs.
BAMTRAIN_KERNEL pack_kernel(const uint32_t* in, uint32_t* out) {
  for (int i = 0; i < kValues; ++i) {
    out[i * kLanes + lane()] = device::pack_bf16(float_of(in[i * kLanes + lane()]),
                                                 float_of(in[(kValues + i) * kLanes + lane()]));
  }
}

}  // namespace bamtrain::wrappers
