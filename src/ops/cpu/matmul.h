#pragma once
// Matrix products for the CPU backend, by oneDNN; results are bitwise identical for any number of
// threads.
//
// oneDNN's own threading may split the inner dimension by the number of threads, which changes the
// order of additions. Here the output is cut into tiles by a rule that depends only on the shape.
// Each tile is one single-threaded oneDNN product, and threads take tiles. Rows of fp32 whose
// starts share few L1 cache sets, as at a width of 1,024, are slow to read for oneDNN. Then a
// thread copies them apart first, in slices of the inner dimension.

#include <cstdint>
#include <functional>
#include <memory>

#include "ops/matrix.h"

namespace bamtrain {

/// C = A B (+ bias over columns), or C += A B. A and B: same dtype, f32 or bf16; C f32 or bf16;
/// bias f32 or null. Products are accumulated in fp32 within one oneDNN call. Throws Error
/// (ExitCode::device) if oneDNN or the system refuses one. A thread allocates memory at its first
/// product of a shape; afterwards only oneDNN does, a few small blocks per tile.
class Matmul {
 public:
  Matmul();
  ~Matmul();
  void run(const Matrix& c, const Matrix& a, const Matrix& b, const float* bias, bool accumulate);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

/// The same product by one oneDNN call with oneDNN's own threads, compiled for the current number
/// of threads. Each call of the result is one product; our code allocates memory only in the first.
/// For tests and benchmarks only: the bits may depend on the number of threads.
std::function<void()> prepare_unguarded(const Matrix& c, const Matrix& a, const Matrix& b);

/// Compiles and computes such a product once.
void matmul_unguarded(const Matrix& c, const Matrix& a, const Matrix& b);

}  // namespace bamtrain
