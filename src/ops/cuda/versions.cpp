#include "ops/cuda/versions.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#ifdef BAMTRAIN_NCCL
#include <nccl.h>
#endif

#include "core/error.h"
#include "ops/cuda/library.h"

namespace bamtrain {

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw Error::fault(ExitCode::device, "CUDA",
                     std::string(cudaGetErrorString(error)) + ", for " + what, "run nvidia-smi");
}

/// "12.8" of 12080.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// "12.8.5" of 120805.
std::string version(size_t number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

std::string cublas_version() {
  const cuda::LoadedLibrary library(BAMTRAIN_SONAME("libcublasLt", CUBLAS_VER_MAJOR), "cuBLASLt",
                                    ExitCode::device, "install the CUDA toolkit's cuBLAS");
  const decltype(&cublasLtGetVersion) get = library["cublasLtGetVersion"];
  return version(get());
}

#ifdef BAMTRAIN_NCCL
std::string nccl_version() {
  const cuda::LoadedLibrary library(BAMTRAIN_SONAME("libnccl", NCCL_MAJOR), "NCCL",
                                    ExitCode::distributed, "install NCCL, or start one process");
  const decltype(&ncclGetVersion) get = library["ncclGetVersion"];
  int number = 0;
  return get(&number) == ncclSuccess ? version(static_cast<size_t>(number)) : "unknown";
}
#endif

}  // namespace

std::string cuda_device_name() {
  int index = 0;
  cudaDeviceProp p = {};
  check(cudaGetDevice(&index), "the device");
  check(cudaGetDeviceProperties(&p, index), "the properties of the device");
  return p.name;
}

std::map<std::string, std::string> cuda_libraries([[maybe_unused]] bool messages) {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "the version of the runtime");
  check(cudaDriverGetVersion(&driver), "the version of the driver");
  std::map<std::string, std::string> versions = {{"CUDA", cuda_version(runtime)},
                                                 {"CUDA driver", cuda_version(driver)},
                                                 {"cuBLASLt", cublas_version()}};
#ifdef BAMTRAIN_NCCL
  if (messages) versions["NCCL"] = nccl_version();
#endif
  return versions;
}

}  // namespace bamtrain
