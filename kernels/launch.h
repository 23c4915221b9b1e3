#pragma once
// The host's view of kernels. Launchers take pointers, sizes and a stream, check them, launch, and
// return a status. They do not allocate, synchronise or throw.

#include <cstdint>

struct CUstream_st;  // what cudaStream_t points to

namespace bamtrain::device {

using Stream = CUstream_st*;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

/// The bits of bamtrain::bf16, as a type that a kernel may hold in shared memory.
struct bf16 {
  uint16_t bits;
};

/// The status of a launch: code 0; the runtime's error code and its description; or kRefused and
/// the argument that the launcher does not accept.
struct [[nodiscard]] LaunchStatus {
  static constexpr int kRefused = -1;

  int code = 0;
  const char* message = "";
  bool ok() const { return code == 0; }
};

inline LaunchStatus refused(const char* why) { return {LaunchStatus::kRefused, why}; }

}  // namespace bamtrain::device
