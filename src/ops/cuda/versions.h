#pragma once
// The device and library versions of the CUDA backend, for a run's record.

#include <map>
#include <string>

namespace bamtrain {

/// The name of the current device ("NVIDIA H200"). REQUIRES: a CUDA backend.
std::string cuda_device_name();

/// Versions as loaded: "CUDA" (the runtime), "CUDA driver" (the newest CUDA that it supports),
/// "cuBLASLt" and, with `messages` between several processes, "NCCL" if it is built in. Throws
/// Error (ExitCode::device, distributed) if one of them is missing.
std::map<std::string, std::string> cuda_libraries(bool messages);

}  // namespace bamtrain
