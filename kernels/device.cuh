#pragma once
// The one boundary between kernels and the machine that runs them. Under nvcc a wrapper is its PTX
// instruction (sm_80 and later); under any other compiler it calls the engine of tests/engine,
// which runs the same kernel source on the CPU. No other file of kernels/ holds PTX, a launch in
// triple angle brackets or the toolkit's bf16 type.
//
// Contract of the warp collectives (shuffle_*, ballot, sync_warp, ldmatrix, mma): every lane in
// `mask`, or all 32 if there is no mask, calls the same line with the same mask. Anything else is
// undefined on hardware; the engine reports it. Of these only sync_warp orders memory accesses.
// Kernels copy shared and global memory by assignment. memcpy is not allowed, since the engine's
// checker does not see it.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "launch.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#define BAMTRAIN_DEVICE __device__ __forceinline__
/// For host and device.
#define BAMTRAIN_BOTH __host__ __device__ __forceinline__
#define BAMTRAIN_KERNEL __global__ void
#define BAMTRAIN_LAUNCH_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#define BAMTRAIN_UNROLL _Pragma("unroll")
#define BAMTRAIN_NO_UNROLL _Pragma("unroll 1")
#define BAMTRAIN_PRAGMA(text) _Pragma(#text)
#define BAMTRAIN_UNROLL_TIMES(n) BAMTRAIN_PRAGMA(unroll n)
/// `name`: unsigned char*, the launch's dynamic shared memory, aligned to 128 bytes.
#define BAMTRAIN_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
/// `name`: an array of `count` elements of `type` in the block's shared memory, not initialised.
#define BAMTRAIN_SHARED(type, name, count) __shared__ type name[count]
#else
#include "engine/calls.h"

#define BAMTRAIN_DEVICE inline __attribute__((always_inline))
#define BAMTRAIN_BOTH inline
#define BAMTRAIN_KERNEL inline void
#define BAMTRAIN_LAUNCH_BOUNDS(...)
#define BAMTRAIN_UNROLL
#define BAMTRAIN_NO_UNROLL
#define BAMTRAIN_UNROLL_TIMES(n)
#define BAMTRAIN_DYNAMIC_SHARED(name) \
  unsigned char* const name = static_cast<unsigned char*>(::bamtrain::engine::dynamic_shared())
#define BAMTRAIN_SHARED(type, name, count)                                             \
  static char name##_key;                                                              \
  type(&name)[count] = *static_cast<type(*)[count]>(::bamtrain::engine::static_shared( \
      &name##_key, sizeof(type) * (count), alignof(type), {__builtin_FILE(), __builtin_LINE()}))
#endif

namespace bamtrain::device {

using SharedAddress = uint32_t;  // in bytes, of the shared state space
constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;

#ifdef __CUDACC__

BAMTRAIN_DEVICE Dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
BAMTRAIN_DEVICE Dim3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
BAMTRAIN_DEVICE Dim3 block_size() { return {blockDim.x, blockDim.y, blockDim.z}; }
BAMTRAIN_DEVICE Dim3 grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }

BAMTRAIN_DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
BAMTRAIN_DEVICE float float_of(uint32_t bits) { return __uint_as_float(bits); }

/// Called by every thread of the block, none of which has returned; orders their memory accesses.
BAMTRAIN_DEVICE void barrier() { __syncthreads(); }
BAMTRAIN_DEVICE void sync_warp(uint32_t mask = kWholeWarp) { __syncwarp(mask); }

/// The value of lane (own ^ lane_mask), lane_mask in [0, 32). T: 4 or 8 bytes.
template <class T>
BAMTRAIN_DEVICE T shuffle_xor(uint32_t mask, T value, int lane_mask) {
  return __shfl_xor_sync(mask, value, lane_mask);
}
/// The value of `lane`, in [0, 32).
template <class T>
BAMTRAIN_DEVICE T shuffle(uint32_t mask, T value, int lane) {
  return __shfl_sync(mask, value, lane);
}
/// The value of lane (own - delta), or the own value in the first `delta` lanes.
template <class T>
BAMTRAIN_DEVICE T shuffle_up(uint32_t mask, T value, int delta) {
  return __shfl_up_sync(mask, value, static_cast<unsigned>(delta));
}
/// The value of lane (own + delta), or the own value in the last `delta` lanes.
template <class T>
BAMTRAIN_DEVICE T shuffle_down(uint32_t mask, T value, int delta) {
  return __shfl_down_sync(mask, value, static_cast<unsigned>(delta));
}
/// Bit l: `predicate` of lane l, zero outside the mask.
BAMTRAIN_DEVICE uint32_t ballot(uint32_t mask, bool predicate) {
  return __ballot_sync(mask, predicate);
}

BAMTRAIN_DEVICE SharedAddress shared_address(const void* shared) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(shared));
}

/// T (8 or 16 bytes, aligned to as many) in shared memory.
template <class T>
BAMTRAIN_DEVICE T load_shared(SharedAddress at) {
  return *static_cast<const T*>(__cvta_shared_to_generic(at));
}

/// N 8 x 8 matrices of 16-bit elements, N = 1, 2 or 4: lane 8 m + r gives the address (16-byte
/// aligned) of row r of matrix m. r[m] of lane l holds elements (l / 4, 2 (l % 4)) and
/// (l / 4, 2 (l % 4) + 1), the first in the low half.
BAMTRAIN_DEVICE void ldmatrix(uint32_t (&r)[1], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(row)
               : "memory");
}
BAMTRAIN_DEVICE void ldmatrix(uint32_t (&r)[2], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}
BAMTRAIN_DEVICE void ldmatrix(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
/// As above with each matrix transposed: elements (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
BAMTRAIN_DEVICE void ldmatrix_transposed(uint32_t (&r)[1], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(row)
               : "memory");
}
BAMTRAIN_DEVICE void ldmatrix_transposed(uint32_t (&r)[2], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}
BAMTRAIN_DEVICE void ldmatrix_transposed(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

/// d (16 x 8, f32) += a (16 x 16, bf16) b (16 x 8, bf16). With g = lane / 4 and t = lane % 4:
/// d[i] is element (g + 8 (i / 2), 2 t + i % 2); a[i] holds (g + 8 (i % 2), 2 t + 8 (i / 2)) and
/// the element to its right; b0, b1 hold (2 t, g), (2 t + 8, g) and the element below each.
BAMTRAIN_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Copies 16 bytes from global to shared memory, both 16-byte aligned. Done once the thread has
/// waited for the copy's group; other threads see it after a barrier. If not `wanted`, reads
/// nothing and writes 16 zero bytes.
BAMTRAIN_DEVICE void copy_async_16(SharedAddress to, const void* from, bool wanted = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(wanted ? 16 : 0)
               : "memory");
}
/// Groups the thread's copies since the last commit.
BAMTRAIN_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the thread's `kLeft` most recent groups are unfinished.
template <int kLeft>
BAMTRAIN_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// 2^x and log2(x), approximate; subnormal arguments and results are zero.
BAMTRAIN_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
BAMTRAIN_DEVICE float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Rounds to nearest even; NaN becomes the NaN 0x7FFF. `low` goes to the low half.
BAMTRAIN_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// to[0] = x, to[1] = y in one access to global memory. REQUIRES: `to` is aligned to 8 bytes.
BAMTRAIN_DEVICE void store_two(float* to, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(x),
               "f"(y)
               : "memory");
}

/// Enqueues kernel(args...) on `stream`. Returns the launch's status; errors during execution show
/// at the next synchronisation of the stream.
template <class... Parameters, class... Arguments>
LaunchStatus launch(void (*kernel)(Parameters...), Dim3 grid, Dim3 block, size_t shared_bytes,
                    Stream stream, const Arguments&... arguments) {
  const auto start = [&](Parameters... parameters) {
    void* addresses[] = {static_cast<void*>(&parameters)..., nullptr};
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.x, grid.y, grid.z),
                            dim3(block.x, block.y, block.z), addresses, shared_bytes, stream);
  };
  cudaError_t error = cudaSuccess;
  // More than 48 KiB of shared memory, the kernel's own arrays included, needs an opt-in. The
  // setting holds until the kernel's next launch, so only one host thread may launch.
  if (shared_bytes > 0) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes));
  }
  if (error == cudaSuccess) error = start(static_cast<Parameters>(arguments)...);
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // reported here; clears it for later calls
  return {static_cast<int>(error), cudaGetErrorString(error)};
}

#else

using engine::Place;

BAMTRAIN_DEVICE Dim3 as_dim3(const engine::Index& i) { return {i.x, i.y, i.z}; }
BAMTRAIN_DEVICE Dim3 thread_index() { return as_dim3(engine::thread_index()); }
BAMTRAIN_DEVICE Dim3 block_index() { return as_dim3(engine::block_index()); }
BAMTRAIN_DEVICE Dim3 block_size() { return as_dim3(engine::block_size()); }
BAMTRAIN_DEVICE Dim3 grid_size() { return as_dim3(engine::grid_size()); }

BAMTRAIN_DEVICE uint32_t bits_of(float x) { return engine::bits_of(x); }
BAMTRAIN_DEVICE float float_of(uint32_t bits) { return engine::float_of(bits); }

#define BAMTRAIN_HERE Place at = {__builtin_FILE(), __builtin_LINE()}

BAMTRAIN_DEVICE void barrier(BAMTRAIN_HERE) { engine::barrier(at); }
BAMTRAIN_DEVICE void sync_warp(uint32_t mask = kWholeWarp, BAMTRAIN_HERE) {
  engine::sync_warp(mask, at);
}
template <class T>
BAMTRAIN_DEVICE T shuffle_xor(uint32_t mask, T value, int lane_mask, BAMTRAIN_HERE) {
  return engine::shuffle(engine::Shuffle::exclusive_or, mask, value, lane_mask, at);
}
template <class T>
BAMTRAIN_DEVICE T shuffle(uint32_t mask, T value, int lane, BAMTRAIN_HERE) {
  return engine::shuffle(engine::Shuffle::index, mask, value, lane, at);
}
template <class T>
BAMTRAIN_DEVICE T shuffle_up(uint32_t mask, T value, int delta, BAMTRAIN_HERE) {
  return engine::shuffle(engine::Shuffle::up, mask, value, delta, at);
}
template <class T>
BAMTRAIN_DEVICE T shuffle_down(uint32_t mask, T value, int delta, BAMTRAIN_HERE) {
  return engine::shuffle(engine::Shuffle::down, mask, value, delta, at);
}
BAMTRAIN_DEVICE uint32_t ballot(uint32_t mask, bool predicate, BAMTRAIN_HERE) {
  return engine::ballot(mask, predicate, at);
}

BAMTRAIN_DEVICE SharedAddress shared_address(const void* shared, BAMTRAIN_HERE) {
  return engine::shared_address(shared, at);
}
template <class T>
BAMTRAIN_DEVICE T load_shared(SharedAddress address, BAMTRAIN_HERE) {
  return *static_cast<const T*>(engine::shared_pointer(address, sizeof(T), at));
}
template <int N>
BAMTRAIN_DEVICE void ldmatrix(uint32_t (&r)[N], SharedAddress row, BAMTRAIN_HERE) {
  static_assert(N == 1 || N == 2 || N == 4);
  engine::ldmatrix(r, N, false, row, at);
}
template <int N>
BAMTRAIN_DEVICE void ldmatrix_transposed(uint32_t (&r)[N], SharedAddress row, BAMTRAIN_HERE) {
  static_assert(N == 1 || N == 2 || N == 4);
  engine::ldmatrix(r, N, true, row, at);
}
BAMTRAIN_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                  BAMTRAIN_HERE) {
  engine::mma_m16n8k16(d, a, b0, b1, at);
}
BAMTRAIN_DEVICE void copy_async_16(SharedAddress to, const void* from, bool wanted = true,
                                   BAMTRAIN_HERE) {
  engine::copy_async_16(to, from, wanted, at);
}
BAMTRAIN_DEVICE void copy_async_commit() { engine::copy_async_commit(); }
template <int kLeft>
BAMTRAIN_DEVICE void copy_async_wait() {
  engine::copy_async_wait(kLeft);
}

BAMTRAIN_DEVICE float exp2_approx(float x) { return engine::exp2_approx(x); }
BAMTRAIN_DEVICE float log2_approx(float x) { return engine::log2_approx(x); }
BAMTRAIN_DEVICE uint32_t pack_bf16(float low, float high) { return engine::pack_bf16(low, high); }
BAMTRAIN_DEVICE void store_two(float* to, float x, float y) {
  to[0] = x;
  to[1] = y;
}

/// Runs the kernel to completion. A fault of the kernel throws engine::Fault.
template <class... Parameters, class... Arguments>
LaunchStatus launch(void (*kernel)(Parameters...), Dim3 grid, Dim3 block, size_t shared_bytes,
                    Stream, const Arguments&... arguments) {
  const char* refused =
      engine::launch(kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes,
                     static_cast<Parameters>(arguments)...);
  return refused == nullptr ? LaunchStatus{} : LaunchStatus{1, refused};
}

#undef BAMTRAIN_HERE
#endif

BAMTRAIN_DEVICE float to_float(bf16 x) { return float_of(static_cast<uint32_t>(x.bits) << 16); }
/// The halves of a packed pair.
BAMTRAIN_DEVICE float low_bf16(uint32_t pair) { return float_of(pair << 16); }
BAMTRAIN_DEVICE float high_bf16(uint32_t pair) { return float_of(pair & 0xFFFF0000u); }
/// Rounds to nearest even; NaN becomes the NaN 0x7FFF.
BAMTRAIN_DEVICE bf16 to_bf16(float x) { return {static_cast<uint16_t>(pack_bf16(x, 0.0f))}; }

}  // namespace bamtrain::device
