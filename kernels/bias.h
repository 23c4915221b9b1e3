#pragma once
// The bias of a linear layer, forward and backward. A: float or bf16.

#include <algorithm>
#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

template <class A>
struct AddBias {
  A* y = nullptr;               // (N, O), added to in place
  const float* bias = nullptr;  // (O)
  int64_t N = 0, O = 0;
  int64_t row = 0;  // elements from one row of y to the next; 0: O
};

/// y += bias, row by row: one kernel. Refuses row strides that are not multiples of 8, sizes that
/// are not positive, and addresses that are not aligned to 16 bytes.
template <class A>
device::LaunchStatus add_bias(const AddBias<A>& a, device::Stream stream);

template <class A>
struct ColumnSums {
  float* sums = nullptr;  // (O), added to
  const A* x = nullptr;   // (N, O)
  int64_t N = 0, O = 0;
  float* partial = nullptr;  // scratch: column_sums_partial floats
  int64_t row = 0;           // elements from one row of x to the next; 0: O
};

/// sums += the sum of x's rows: two kernels. Refuses what add_bias refuses.
template <class A>
device::LaunchStatus column_sums(const ColumnSums<A>& a, device::Stream stream);

/// Rows that one block adds up: a multiple of 32 (its warps times the rows that each has in
/// flight), at least 64. Chosen so that about 1,536 blocks of 256 columns cover the matrix.
constexpr int64_t column_sums_rows(int64_t N, int64_t O) {
  const int64_t pieces = std::max<int64_t>(16, 1536 / ((O + 255) / 256));
  return 32 * std::max<int64_t>(2, (N + 32 * pieces - 1) / (32 * pieces));
}
constexpr int64_t column_sums_pieces(int64_t N, int64_t O) {
  const int64_t rows = column_sums_rows(N, O);
  return (N + rows - 1) / rows;
}
/// Floats of ColumnSums::partial; enough for any smaller N or O too.
constexpr int64_t column_sums_partial(int64_t N, int64_t O) {
  return std::min<int64_t>((N + 63) / 64 * O, std::max<int64_t>(16 * O, 1536 * 256));
}

}  // namespace bamtrain::kernels
