#pragma once
// Passes over flat arrays. See add, convert and squared_norm in ops/ops.h.
//
// All refuse n < 0, and addresses that are not aligned to 16 bytes.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// dst (n) += src (n), A: float or bf16; each sum is formed in fp32 and rounded.
template <class A>
device::LaunchStatus add(A* dst, const A* src, int64_t n, device::Stream stream);
device::LaunchStatus add(double* dst, const double* src, int64_t n, device::Stream stream);

/// dst (n) = src (n) rounded to A: float or bf16.
template <class A>
device::LaunchStatus convert(A* dst, const float* src, int64_t n, device::Stream stream);

/// Doubles of squared_norm's scratch.
constexpr int64_t kSquaredNormScratch = 1024;

/// result (1) = the sum of the squares of x (n), in fp64 and in an order that depends on n alone.
/// Two kernels.
device::LaunchStatus squared_norm(double* result, double* scratch, const float* x, int64_t n,
                                  device::Stream stream);

}  // namespace bamtrain::kernels
