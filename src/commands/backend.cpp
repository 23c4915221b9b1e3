#include "commands/backend.h"

#include "dist/communicator.h"
#include "ops/check/check.h"
#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/versions.h"
#include "ops/reference/reference.h"

namespace bamtrain {

std::unique_ptr<Backend> make_backend(DeviceKind device, Precision precision, int local_rank) {
  const bool tf32 = precision == Precision::tf32;
#ifdef BAMTRAIN_CUDA
  const bool found = device != DeviceKind::cpu && cuda_devices() > 0;
  if (device == DeviceKind::cuda || (device == DeviceKind::automatic && found)) {
    return make_cuda_backend(local_rank, tf32);
  }
  if (device == DeviceKind::check && found) {
    CheckLimits limits;
    if (tf32) limits.f32 = 0x1p-8;  // operands are rounded by at most 2^-11, one or two per term
    return make_check_backend(make_cuda_backend(local_rank, tf32), make_cpu_backend(), limits);
  }
#else
  static_cast<void>(local_rank);
  if (device == DeviceKind::cuda) {
    throw Error::fault(ExitCode::device, "device", "this bamtrain was built without CUDA",
                       "build it with -Dcuda=enabled, or set device to auto");
  }
#endif
  if (tf32) {
    throw Error(ExitCode::config, "train.precision", "fp32 or bf16 on a CPU", "tf32",
                "choose one of them, or use a GPU");
  }
  if (device == DeviceKind::check) {
    return make_check_backend(make_cpu_backend(), make_reference_backend());
  }
  return make_cpu_backend();
}

std::unique_ptr<Backend> make_plan_without_device(DeviceKind device) {
#ifdef BAMTRAIN_CUDA
  if (device == DeviceKind::cuda && cuda_devices() == 0) return make_cuda_plan();
#else
  static_cast<void>(device);
#endif
  return nullptr;
}

Machinery machinery_of(Backend& backend, int processes) {
  Machinery m;
  m.libraries["oneDNN"] = onednn_version();
  if (const std::string mpi = mpi_library(); !mpi.empty()) m.libraries["MPI"] = mpi;
  if (backend.memory().on_host()) {
    m.isa = onednn_isa();
    return m;
  }
#ifdef BAMTRAIN_CUDA
  m.gpu = cuda_device_name();
  m.libraries.merge(cuda_libraries(processes > 1));
#else
  static_cast<void>(processes);
#endif
  return m;
}

}  // namespace bamtrain
