#pragma once
// Checks of launcher arguments.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// Whether 16-byte accesses may start at each of the addresses; null counts as aligned.
template <class... T>
bool aligned(const T*... address) {
  return ((reinterpret_cast<uintptr_t>(address) % 16 == 0) && ...);
}

/// The limit of a grid's x dimension, in blocks.
constexpr int64_t kMaxBlocks = 0x7FFFFFFF;

constexpr int64_t blocks_of(int64_t items, int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

inline device::Dim3 grid_of(int64_t blocks) { return {static_cast<uint32_t>(blocks), 1, 1}; }

/// Blocks of `per_block` rows each, for T rows of H heads of B sequences.
inline device::Dim3 grid_of_rows(int64_t T, int64_t per_block, int64_t H, int64_t B) {
  return {static_cast<uint32_t>(blocks_of(T, per_block)), static_cast<uint32_t>(H),
          static_cast<uint32_t>(B)};
}

}  // namespace bamtrain::kernels
