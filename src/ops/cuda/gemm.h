#pragma once
// Matrix products on the device. gemm.cpp: cuBLASLt; tests/engine/gemm.cpp: loops on the CPU.

#include <cstdint>
#include <memory>

#include "kernels/launch.h"
#include "ops/cuda/runtime.h"
#include "ops/matrix.h"

namespace bamtrain::cuda {

/// Products with fp32 accumulation. The algorithm for a shape is chosen at its first use by the
/// library's heuristic, not by timing, and kept. So results are bitwise identical on the same
/// device with the same library.
class Gemm {
 public:
  /// Allocates the library's scratch: 32 MiB of device memory outside every arena. Throws Error
  /// (ExitCode::device) if the library is missing or refuses. `tf32`: f32 operands may be rounded
  /// to TF32 (10 bits of mantissa).
  explicit Gemm(bool tf32);
  explicit Gemm(NoDevice);  // the object must not be used
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// c = a b, or c += a b. a, b: both f32 or both bf16; c: f32 or their dtype. c is not transposed.
  void multiply(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate,
                device::Stream stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
