#pragma once
// What the host side of the CUDA backend needs from the machine besides kernels and products: a
// device, memory, transfers, one stream, recorded work. runtime.cpp implements it with the CUDA
// runtime; tests/engine/runtime.cpp on the CPU, next to the engine that runs the kernels there.
//
// Failures are Errors (ExitCode::device) with the runtime's own text.

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/launch.h"

namespace bamtrain::cuda {

using device::Stream;

/// The number of devices that this process can see; 0 without a driver. Throws Error if a driver is
/// too old or does not work, so that nobody ends up on the CPU unnoticed.
int device_count();

/// Makes device `index` the current device, and returns its name ("NVIDIA H200"). If only one
/// device is visible, uses that one, whatever `index`. Throws Error if there is no driver, no such
/// device, or no device of compute capability 8.0 or later.
std::string open_device(int index);

/// Zero-filled, aligned to 256 bytes.
void* allocate(int64_t bytes);
void release(void* memory);
/// Bytes that allocate() can still provide.
int64_t free_memory();

/// Replaces a device when work is only planned.
struct NoDevice {};

/// The stream of all work; operations on it run one after another.
class WorkStream {
 public:
  WorkStream();
  explicit WorkStream(NoDevice);  // the object must not be used
  ~WorkStream();
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;
  Stream get() const;

  /// `from` is host memory and may be reused after the call. For up to 1 MiB (a batch's tokens),
  /// the host does not wait for the device.
  void upload(void* to, const void* from, int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void fill_zero(void* to, int64_t bytes, Stream stream);
/// Sets every bit.
void fill_ones(void* to, int64_t bytes, Stream stream);
/// Waits for the stream; `to` is host memory.
void download(void* to, const void* from, int64_t bytes, Stream stream);
/// Waits for the stream. Errors of earlier work surface here at the latest.
void synchronize(Stream stream);

/// Throws if a launch failed or was refused; `what`: the operation.
void check(device::LaunchStatus status, const char* what);

/// Work recorded once and replayed at the cost of one launch: kernels, products and fill_zero on
/// one stream, with their recorded arguments. Transfers cannot be recorded.
class CapturedGraph {
 public:
  CapturedGraph();
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&&) noexcept;
  CapturedGraph& operator=(CapturedGraph&&) noexcept;

  void begin(Stream stream);
  void end(Stream stream);
  /// Replaces end() if the work failed.
  void give_up(Stream stream);
  /// REQUIRES: begin and end.
  void replay(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
