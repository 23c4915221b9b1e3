#pragma once
// Operands of a matrix product.

#include <algorithm>
#include <utility>

#include "core/tensor.h"

namespace bamtrain {

/// A matrix operand: `rows` x `columns` at `data`, or the transpose of what is stored there. `ld`
/// is the distance between stored rows in elements.
struct Matrix {
  void* data = nullptr;
  Dtype dtype = Dtype::f32;
  int64_t rows = 0, columns = 0, ld = 0;
  bool transposed = false;  // stored as (columns, rows)
};

/// Views t (rows, columns) as a matrix; rows may be strided.
inline Matrix matrix(const Tensor& t) {
  require(t.rank == 2 && (t.stride[1] == 1 || t.shape[1] == 1), "a matrix with contiguous rows");
  return {t.data, t.dtype, t.shape[0], t.shape[1], std::max(t.stride[0], t.shape[1]), false};
}

/// The transpose of matrix(t).
inline Matrix matrix_transposed(const Tensor& t) {
  Matrix m = matrix(t);
  std::swap(m.rows, m.columns);
  m.transposed = true;
  return m;
}

}  // namespace bamtrain
