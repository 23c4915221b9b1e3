// The CUDA backend on the CPU engine, where device memory is host memory.

#include "cuda/device.h"
#include "ops/cuda/cuda.h"

namespace bamtrain::testing {

Device cuda_device() {
  Device d{make_cuda_backend(0), nullptr};
  d.source = &d.backend->memory();
  return d;
}

std::vector<int64_t> long_lengths() { return {64, 256}; }

}  // namespace bamtrain::testing
