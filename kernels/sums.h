#pragma once
// Running sums of gates, which attention reads of a prior of family sums, and the adjoint. A: float
// or bf16. See sums_forward in ops/mechanisms/sums.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

/// Gates (B, T, H), strides in elements, the heads contiguous; u = softplus(gates + bias).
template <class A>
struct Gates {
  const A* data = nullptr;
  int64_t batch = 0, row = 0;
  const float* bias = nullptr;  // (H)
  int B = 0, H = 0, T = 0;
};

/// (B, H, T), strides in elements, tokens contiguous. `before`: (B, H), the sums before the first
/// token; null: 0.
struct RunningSums {
  double* data = nullptr;
  int64_t batch = 0, head = 0;
  const double* before = nullptr;
  int64_t before_batch = 0, before_head = 0;
};

/// sums = before + u_0 + ... + u_t, in fp64: one kernel, one warp per sequence and head. The order
/// of additions depends only on T. Refuses sizes that are not positive, over 65,535 sequences and
/// missing arrays.
template <class A>
device::LaunchStatus running_sums_forward(const RunningSums& sums, const Gates<A>& gates,
                                          device::Stream stream);

template <class A>
struct GateGradients {
  A* dgates = nullptr;           // laid out as the gates
  float* dbias = nullptr;        // (H), +=
  const float* dsums = nullptr;  // (B, H, T)
  double* scratch = nullptr;     // (B, H)
};

/// dgates and dbias: two kernels. Refuses what the forward pass refuses.
template <class A>
device::LaunchStatus running_sums_backward(const GateGradients<A>& g, const Gates<A>& gates,
                                           device::Stream stream);

}  // namespace bamtrain::kernels
