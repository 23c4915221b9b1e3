// The CUDA backend on a GPU, with the memory source of the program itself.

#include <cuda_runtime.h>

#include <stdexcept>

#include "cuda/device.h"
#include "ops/cuda/cuda.h"
#include "ops/host_view.h"

namespace bamtrain::testing {

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class GpuMemory final : public DeviceMemory {
 public:
  bool holds(const void* address) const override {
    cudaPointerAttributes of = {};
    check(cudaPointerGetAttributes(&of, address));
    return of.type == cudaMemoryTypeDevice;
  }
  void download(void* host, const void* device, int64_t bytes) const override {
    copy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  void upload(void* device, const void* host, int64_t bytes) const override {
    copy(device, host, bytes, cudaMemcpyHostToDevice);
  }
  void fill_ones(void* device, int64_t bytes) const override {
    check(cudaMemset(device, 0xFF, static_cast<size_t>(bytes)));
    check(cudaDeviceSynchronize());
  }

 private:
  // The backend's streams and the default stream, used for these copies, do not wait for each
  // other.
  static void copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(to, from, static_cast<size_t>(bytes), kind));
    check(cudaDeviceSynchronize());
  }
};

}  // namespace

Device cuda_device() {
  static const GpuMemory memory;
  device_memory = &memory;
  Device d{make_cuda_backend(0), nullptr};
  d.source = &d.backend->memory();
  return d;
}

std::vector<int64_t> long_lengths() { return {64, 256, 1024, 2048}; }

}  // namespace bamtrain::testing
