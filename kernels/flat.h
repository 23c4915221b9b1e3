#pragma once
// Passes over flat arrays. See add, convert, sum and squares in ops/ops.h.
//
// All refuse n < 0. All but sum refuse addresses that are not aligned to 16 bytes.

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

/// squares (ceil(n / kSquaresTile)) = the sums of the squares of each kSquaresTile elements of x
/// (n), in fp64.
constexpr int kSquaresTile = 4096;
device::LaunchStatus squares(double* squares, const float* x, int64_t n, device::Stream stream);

/// total (1) += the sum of x (n) float or double, in fp64 and in an order that depends on n alone.
template <class X>
device::LaunchStatus sum(double* total, const X* x, int64_t n, device::Stream stream);

}  // namespace bamtrain::kernels
