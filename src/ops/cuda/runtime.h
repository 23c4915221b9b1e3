#pragma once
// What the host side of the CUDA backend asks of the machine besides kernels and products: a
// device, memory, transfers, one stream, recorded work. runtime.cpp answers with the CUDA runtime;
// tests/engine/runtime.cpp answers on the CPU, beside the engine that runs the kernels there.
//
// Failures are Errors (ExitCode::device) with the runtime's own text.

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/launch.h"

namespace bamtrain::cuda {

using device::Stream;

/// Devices that this process can see: 0 without a driver. Error where there is a driver that is
/// too old or does not work: nobody should find themselves on the CPU for that.
int device_count();

/// Makes device `index` the one that everything below uses, and returns its name ("NVIDIA H200").
/// Where a single one is visible it is that, whatever `index`.
/// Error where there is no driver, no such device, or none of compute capability 8.0 or later.
std::string open_device(int index);

/// Zero-filled, aligned to 256 bytes.
void* allocate(int64_t bytes);
void release(void* memory);
/// Bytes that allocate() could still give.
int64_t free_memory();

/// In the place of a device, where work is planned and none is done.
struct NoDevice {};

/// The stream of all work; operations on it run one after another.
class WorkStream {
 public:
  WorkStream();
  explicit WorkStream(NoDevice);  // which must not be used
  ~WorkStream();
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;
  Stream get() const;

  /// `from` is host memory and may be reused when the call returns. Up to 1 MiB at a time (a
  /// batch's tokens), the host goes on while the device works.
  void upload(void* to, const void* from, int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void fill_zero(void* to, int64_t bytes, Stream stream);
/// Every bit is set.
void fill_ones(void* to, int64_t bytes, Stream stream);
/// Waits for the stream; `to` is host memory.
void download(void* to, const void* from, int64_t bytes, Stream stream);
/// Waits for the stream. An error of earlier work shows here at the latest.
void synchronize(Stream stream);

/// Throws where a launch failed or was refused; `what`: the operation.
void check(device::LaunchStatus status, const char* what);

/// Work recorded once and replayed at the cost of one launch: kernels, products and fill_zero on
/// one stream, with the arguments that they had. Transfers cannot be recorded.
class CapturedGraph {
 public:
  CapturedGraph();
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&&) noexcept;
  CapturedGraph& operator=(CapturedGraph&&) noexcept;

  void begin(Stream stream);
  void end(Stream stream);
  /// In place of end(), where the work failed.
  void give_up(Stream stream);
  /// REQUIRES: begin and end.
  void replay(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::cuda
