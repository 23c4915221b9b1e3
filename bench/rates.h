#pragma once
// What the machine can do, measured in the same run as what is compared with it.

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

/// The library of the matrix products with its version, as "oneDNN 2.6.3".
std::string matrix_library();

/// The best FLOP/s of the library's own threaded matrix product, over shapes of a training step.
/// Compilation, memory and a first product are outside of the time.
double peak_matmul(Dtype dtype);

/// The best bytes per second of a threaded copy between buffers far larger than the caches: bytes
/// read plus bytes written.
double copy_bandwidth();

/// The same, once more in every call.
class Copy {
 public:
  Copy();
  double bandwidth();

 private:
  Arena arena_;  // memory as the training has it
  Tensor from_, to_;
};

/// The largest resident set of this process so far, in bytes.
int64_t peak_bytes();

}  // namespace bamtrain::bench
