#pragma once
// Where an arena's one block of memory comes from.

#include <cstdint>

namespace bamtrain {

/// The remedy if a memory plan does not fit.
inline constexpr const char* kPlanRemedy =
    "lower train.micro_batch, data.sequence_length, train.lanes or the model's sizes, or set "
    "train.recompute";

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Zero-filled, aligned to at least 64 bytes. Throws Error (ExitCode::device) if there is too
  /// little.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* memory, int64_t bytes) = 0;
  /// Throws Error (ExitCode::device) unless `bytes` could ever be allocated.
  virtual void check_fits(int64_t bytes) const = 0;
  /// Whether the host can read and write this memory through its pointers.
  virtual bool on_host() const = 0;
};

/// The machine's own memory, in huge pages if the system has them.
MemorySource& host_memory();

}  // namespace bamtrain
