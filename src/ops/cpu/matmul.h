#pragma once
// Matrix products for the CPU backend, by oneDNN, with the same bits for any number of threads.
//
// oneDNN's own threading may split the inner dimension by the number of threads, which changes the
// order of additions. Here the output is cut into tiles by a rule that knows the shape only, every
// tile is one single-threaded oneDNN product, and threads take tiles. Where oneDNN would read fp32
// rows that begin in few sets of the first cache, as those of a width of 1,024 do, a thread copies
// them apart first, by slices of the inner dimension.

#include <cstdint>
#include <functional>
#include <memory>

#include "ops/matrix.h"

namespace bamtrain {

/// C = A B (+ bias over columns), or C += A B. Same dtype f32 or bf16 for A and B; C f32 or bf16;
/// bias f32 or null. Products are accumulated in fp32 within one oneDNN call. Error
/// (ExitCode::device) where oneDNN or the system refuses one. A thread takes memory at the first
/// product of a shape; afterwards only oneDNN does, a few small pieces per tile.
class Matmul {
 public:
  Matmul();
  ~Matmul();
  void run(const Matrix& c, const Matrix& a, const Matrix& b, const float* bias, bool accumulate);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

/// The same product by one call of oneDNN with its own threads, compiled for as many as there are
/// now: every call of the result is one product, and all but the first take no memory of ours. For
/// tests and benchmarks only: its bits may depend on the number of threads.
std::function<void()> prepare_unguarded(const Matrix& c, const Matrix& a, const Matrix& b);

/// Such a product once, from compilation on.
void matmul_unguarded(const Matrix& c, const Matrix& a, const Matrix& b);

}  // namespace bamtrain
