#pragma once
// The backend that a config asks for.

#include <map>
#include <memory>
#include <string>

#include "config/reader.h"
#include "ops/ops.h"

namespace bamtrain {

/// `local_rank`: this process among those of its node, each of which takes a GPU of its own.
/// Error (device, config): no such device, or a precision that it has not.
std::unique_ptr<Backend> make_backend(DeviceKind device, Precision precision, int local_rank);

/// The backend that a run would be planned by: where device is cuda, this build has it and the
/// machine has no GPU, one without a device (make_cuda_plan); else none. Error (device): the driver
/// does not work.
std::unique_ptr<Backend> make_plan_without_device(DeviceKind device);

/// What such a backend computes on and with, for the run's record.
struct Machinery {
  std::string gpu;                               // "NVIDIA H200"; empty: none
  std::map<std::string, std::string> libraries;  // versions as loaded, by name
  std::string isa;                               // oneDNN's, where the host computes
};

/// REQUIRES: `backend` of make_backend. `processes`: of the run.
Machinery machinery_of(Backend& backend, int processes);

}  // namespace bamtrain
