#pragma once
// GEMM microkernels on packed fp32 tiles, the inner loops of the CPU attention: C (M, N) = A B, or
// C += A B, with C kept in registers over the whole inner dimension.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/cpu/simd.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tile {

/// A (M, K) has any two strides; B (K, N) and C (M, N) have contiguous rows.
struct Operand {
  const float* data;
  int64_t row_stride, column_stride;
};

/// R rows by NV vectors of C in registers.
template <int R, int NV, bool kAccumulate>
inline void block(int64_t K, Operand a, const float* b, int64_t ldb, float* c, int64_t ldc) {
  simd::Vec sum[R][NV];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < NV; ++v) {
      sum[r][v] = kAccumulate ? simd::load(c + r * ldc + v * simd::kWidth) : simd::Vec{};
    }
  }
  for (int64_t k = 0; k < K; ++k) {
    simd::Vec row[NV];
    for (int v = 0; v < NV; ++v) row[v] = simd::load(b + k * ldb + v * simd::kWidth);
    for (int r = 0; r < R; ++r) {
      const float x = a.data[r * a.row_stride + k * a.column_stride];
      for (int v = 0; v < NV; ++v) sum[r][v] += x * row[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < NV; ++v) simd::store(c + r * ldc + v * simd::kWidth, sum[r][v]);
  }
}

/// The widest block in vectors, and the rows per block that fill the registers: 24 accumulators of
/// 32 registers, 12 of 16.
constexpr int kVectors = simd::kRegisters == 32 ? 4 : 2;
constexpr int rows_per_block(int NV) {
  if (simd::kRegisters == 16) return NV == 2 ? 6 : 12;
  return NV == 4 ? 6 : NV == 3 ? 8 : 12;
}

template <int NV, bool kAccumulate, int... R>
inline void rest(std::integer_sequence<int, R...>, int64_t rows, int64_t K, Operand a,
                 const float* b, int64_t ldb, float* c, int64_t ldc) {
  ((rows == R ? block < R == 0 ? 1 : R, NV, kAccumulate > (K, a, b, ldb, c, ldc) : void()), ...);
}

// Not inline: inlined into a large function, its accumulators were spilled to memory.
template <int NV, bool kAccumulate>
[[gnu::noinline]] void columns(int64_t M, int64_t K, Operand a, const float* b, int64_t ldb,
                               float* c, int64_t ldc) {
  constexpr int R = rows_per_block(NV);
  int64_t m = 0;
  for (; m + R <= M; m += R) {
    block<R, NV, kAccumulate>(K, {a.data + m * a.row_stride, a.row_stride, a.column_stride}, b, ldb,
                              c + m * ldc, ldc);
  }
  if (m < M) {
    rest<NV, kAccumulate>(std::make_integer_sequence<int, R>(), M - m, K,
                          {a.data + m * a.row_stride, a.row_stride, a.column_stride}, b, ldb,
                          c + m * ldc, ldc);
  }
}

/// C (M, N) = or += A (M, K) B (K, N). REQUIRES: N a multiple of simd::kWidth.
template <bool kAccumulate>
inline void product(int64_t M, int64_t N, int64_t K, Operand a, const float* b, int64_t ldb,
                    float* c, int64_t ldc) {
  for (int64_t n = 0; n < N;) {
    const int64_t vectors = std::min<int64_t>(kVectors, (N - n) / simd::kWidth);
    switch (vectors) {
      case 1:
        columns<1, kAccumulate>(M, K, a, b + n, ldb, c + n, ldc);
        break;
      case 2:
        columns<2, kAccumulate>(M, K, a, b + n, ldb, c + n, ldc);
        break;
      case 3:
        columns<std::min(3, kVectors), kAccumulate>(M, K, a, b + n, ldb, c + n, ldc);
        break;
      default:
        columns<kVectors, kAccumulate>(M, K, a, b + n, ldb, c + n, ldc);
        break;
    }
    n += vectors * simd::kWidth;
  }
}

}  // namespace tile
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
