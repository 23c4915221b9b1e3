#pragma once
// Matrix products on the device. products.cpp: cuBLASLt; tests/engine/products.cpp: loops on the
// CPU.

#include <cstdint>
#include <memory>

#include "kernels/launch.h"
#include "ops/cuda/runtime.h"
#include "ops/matrix.h"

namespace bamtrain::cuda {

/// Products with fp32 accumulation. The algorithm of a shape is chosen at its first use, by the
/// library's own estimate and not by the clock, and kept: the same device and library give the same
/// bits.
class Products {
 public:
  /// Takes the library's scratch, 32 MiB of device memory outside every arena. Error
  /// (ExitCode::device) where the library is absent or refuses. `tf32`: operands in f32 may be
  /// rounded to TF32 (10 bits of mantissa).
  explicit Products(bool tf32);
  explicit Products(NoDevice);  // which must not be used
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// c = a b, or c += a b. a, b: both f32 or both bf16; c: f32, or as they are. c is not
  /// transposed.
  void multiply(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate,
                device::Stream stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
