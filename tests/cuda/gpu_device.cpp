// The CUDA backend on a GPU, with managed memory. Kernels have to end before the host reads what
// they wrote.

#include <cuda_runtime.h>

#include "cuda/device.h"
#include "ops/cuda/cuda.h"

namespace bamtrain::testing {

namespace {

void check(cudaError_t error) { require(error == cudaSuccess, cudaGetErrorString(error)); }

class ManagedMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override {
    void* memory = nullptr;
    check(cudaMallocManaged(&memory, static_cast<size_t>(bytes)));
    check(cudaMemset(memory, 0, static_cast<size_t>(bytes)));
    check(cudaDeviceSynchronize());
    return memory;
  }
  void release(void* memory, int64_t) override {
    check(cudaDeviceSynchronize());
    check(cudaFree(memory));
  }
  void check_fits(int64_t) const override {}
  bool on_host() const override { return true; }
};

}  // namespace

Device cuda_device() {
  set_wait_before_read([] { check(cudaDeviceSynchronize()); });
  static ManagedMemory memory;
  return {make_cuda_backend(0), &memory};
}

std::vector<int64_t> long_lengths() { return {64, 256, 1024, 2048}; }

}  // namespace bamtrain::testing
