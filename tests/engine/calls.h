#pragma once
// What kernels/device.cuh calls when nvcc does not compile it. Kernels include device.cuh, tests
// include engine.h; the contracts of the wrappers are in device.cuh.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

#include "core/error.h"

namespace bamtrain::engine {

/// A line of kernel source.
struct Place {
  const char* file = "";
  int line = 0;
};

struct Index {
  uint32_t x = 1, y = 1, z = 1;
};

/// The indices of the running thread.
struct Coordinates {
  Index thread, block, block_size, grid_size;
};
extern const Coordinates* running;  // null outside kernels

inline const Index& thread_index() { return running->thread; }
inline const Index& block_index() { return running->block; }
inline const Index& block_size() { return running->block_size; }
inline const Index& grid_size() { return running->grid_size; }

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

void barrier(Place at);
void sync_warp(uint32_t mask, Place at);

enum class Shuffle { exclusive_or, index, up, down };
/// `value` and the result are bit patterns.
uint64_t shuffle_bits(Shuffle kind, uint32_t mask, uint64_t value, int operand, Place at);
template <class T>
T shuffle(Shuffle kind, uint32_t mask, T value, int operand, Place at) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(kind, mask, bits, operand, at);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t ballot(uint32_t mask, bool predicate, Place at);

void* dynamic_shared();
/// The block's array identified by `key`, laid out when a thread first requests it.
void* static_shared(const void* key, size_t bytes, size_t alignment, Place at);
uint32_t shared_address(const void* shared, Place at);

const void* shared_pointer(uint32_t address, size_t bytes, Place at);
void ldmatrix(uint32_t* r, int matrices, bool transposed, uint32_t row, Place at);
void mma_m16n8k16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Place at);

void copy_async_16(uint32_t to, const void* from, bool wanted, Place at);
void copy_async_commit();
void copy_async_wait(int left);

float exp2_approx(float x);
float log2_approx(float x);
uint32_t pack_bf16(float low, float high);

/// Calls `entry(arguments)` once per thread of the grid. Memory at `arguments` (`bytes` bytes)
/// holds the kernel's parameters. Returns null, or the reason why a device would refuse the launch.
/// Throws Fault.
const char* run(Index grid, Index block, size_t shared_bytes, void (*entry)(void*), void* arguments,
                size_t bytes);

/// The free memory that the device reports (tests/engine/runtime.cpp).
extern int64_t free_bytes;

/// Whether launches are being recorded (see tests/engine/runtime.cpp) instead of run.
bool recording();
void record(std::function<void()> work);

template <class... Parameters>
const char* launch(void (*kernel)(Parameters...), Index grid, Index block, size_t shared_bytes,
                   Parameters... parameters) {
  if (recording()) {
    record([=] {
      const char* refusal = launch(kernel, grid, block, shared_bytes, parameters...);
      require(refusal == nullptr, "a recorded launch that a device accepts");
    });
    return nullptr;
  }
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> parameters;
  } call{kernel, {parameters...}};
  const auto entry = [](void* opaque) {
    auto* of_thread = static_cast<Call*>(opaque);
    std::apply(of_thread->kernel, of_thread->parameters);  // by value: every thread has its own
  };
  return run(grid, block, shared_bytes, entry, &call, sizeof call);
}

}  // namespace bamtrain::engine
