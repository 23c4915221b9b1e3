#pragma once
// RMSNorm and LayerNorm, fused with the residual addition before them, forward and backward.
// A: float or bf16. C a multiple of 8, at most kNormMaxC.

#include <algorithm>
#include <cstdint>

#include "core/kinds.h"
#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

constexpr int kNormMaxC = 8192;

template <class A>
struct NormForward {
  A* sum = nullptr;               // (N, C): residual + branch; may be the memory of residual
  A* y = nullptr;                 // (N, C): (sum - mean) rstd weight + bias; mean = 0 for rmsnorm
  float* stats = nullptr;         // (N, 2): mean, rstd, of the sum as A holds it
  const A* residual = nullptr;    // (N, C)
  const A* branch = nullptr;      // (N, C), or null: sum = residual
  const float* weight = nullptr;  // (C)
  const float* bias = nullptr;    // (C), or null
  int64_t N = 0;
  int C = 0;
  NormKind kind = NormKind::rmsnorm;
  float eps = 0;
};

/// One kernel. If sum is residual and there is no branch, sum is not written. Refuses a C outside
/// the limits above, sizes that are not positive, and addresses that are not aligned to 16 bytes.
template <class A>
device::LaunchStatus norm_forward(const NormForward<A>& f, device::Stream stream);

template <class A>
struct NormBackward {
  A* dsum = nullptr;              // (N, C), added to: the adjoint of the norm at dy
  float* dweight = nullptr;       // (C), added to
  float* dbias = nullptr;         // (C), added to, or null
  const A* dy = nullptr;          // (N, C)
  const A* sum = nullptr;         // (N, C), as the forward pass left it
  const float* stats = nullptr;   // (N, 2), likewise
  const float* weight = nullptr;  // (C)
  int64_t N = 0;
  int C = 0;
  NormKind kind = NormKind::rmsnorm;
  float* partial = nullptr;  // scratch: norm_backward_partial floats
};

/// Two kernels. Refuses what the forward pass refuses.
template <class A>
device::LaunchStatus norm_backward(const NormBackward<A>& g, device::Stream stream);

/// Rows whose sums for dweight and dbias share a slot: a multiple of 8 (the rows that a block reads
/// at a time), at least 32; at most 512 slots.
constexpr int64_t norm_backward_rows(int64_t N) {
  return 8 * std::max<int64_t>(4, (N + 8 * 512 - 1) / (8 * 512));
}
constexpr int64_t norm_backward_pieces(int64_t N) {
  return (N + norm_backward_rows(N) - 1) / norm_backward_rows(N);
}
/// Floats of NormBackward::partial; enough for any smaller N or C too.
constexpr int64_t norm_backward_partial(int64_t N, int C) {
  return std::min<int64_t>(512, (N + 31) / 32) * 2 * C;
}

}  // namespace bamtrain::kernels
