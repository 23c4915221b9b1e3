#pragma once
// The machine's rates, measured in the same run as the results they are compared with.

#include <chrono>
#include <cstdint>
#include <string>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace bamtrain::bench {

/// Seconds, from an arbitrary start.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The matrix product library with its version, as "oneDNN 2.6.3".
std::string matrix_library();

/// Peak matmul throughput: the best FLOP/s of the library's own threaded matrix product, over
/// shapes of a training step. The time excludes compilation, allocation and a first product.
double peak_matmul(Dtype dtype);

/// The best bytes per second of a threaded copy between buffers far larger than the caches: bytes
/// read plus bytes written.
double copy_bandwidth();

/// The same; each call measures again.
class Copy {
 public:
  Copy();
  double bandwidth();

 private:
  Arena arena_;  // memory as in training
  Tensor from_, to_;
};

/// The largest resident set of this process so far, in bytes.
int64_t peak_bytes();

}  // namespace bamtrain::bench
