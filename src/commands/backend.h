#pragma once
// The backend that a config asks for.

#include <map>
#include <memory>
#include <string>

#include "config/reader.h"
#include "ops/ops.h"

namespace bamtrain {

/// `local_rank`: this process's rank on its node; each process of a node takes its own GPU. Throws
/// Error (device, config) if the device or its support for the precision is missing.
std::unique_ptr<Backend> make_backend(DeviceKind device, Precision precision, int local_rank);

/// A backend for planning only (make_plan_without_device): one without a device (make_cuda_plan) if
/// `device` is cuda, this build supports it and the machine has no GPU; else null. Throws Error
/// (device) if the driver does not work.
std::unique_ptr<Backend> make_plan_without_device(DeviceKind device);

/// The hardware and libraries of a backend, for the run's record.
struct Machinery {
  std::string gpu;                               // "NVIDIA H200"; empty without a GPU
  std::map<std::string, std::string> libraries;  // versions as loaded, by name
  std::string isa;                               // oneDNN's, if the host computes
};

/// REQUIRES: `backend` is from make_backend. `processes`: the number of the run's processes.
Machinery machinery_of(Backend& backend, int processes);

}  // namespace bamtrain
