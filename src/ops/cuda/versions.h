#pragma once
// What the CUDA backend runs on, for a run's record.

#include <map>
#include <string>

namespace bamtrain {

/// The name of the device in use ("NVIDIA H200"). REQUIRES: a CUDA backend.
std::string cuda_device_name();

/// Versions as they are loaded: "CUDA" (the runtime), "CUDA driver" (the newest CUDA that it runs),
/// "cuBLASLt" and, with `messages` between several processes, "NCCL" where it is built in. Error
/// (ExitCode::device, distributed) where one of them is absent.
std::map<std::string, std::string> cuda_libraries(bool messages);

}  // namespace bamtrain
