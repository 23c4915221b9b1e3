#pragma once
// Where an arena's one block of memory comes from.

#include <cstdint>

namespace bamtrain {

/// What helps where a memory plan does not fit.
inline constexpr const char* kPlanRemedy =
    "lower train.micro_batch, data.sequence_length, train.lanes or the model's sizes, or set "
    "train.recompute";

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Zero-filled, aligned to at least 64 bytes. Error (ExitCode::device) where it has too little.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* memory, int64_t bytes) = 0;
  /// Error (ExitCode::device) unless `bytes` could be had at all.
  virtual void check_fits(int64_t bytes) const = 0;
  /// Whether the host may read and write this memory by its pointers.
  virtual bool on_host() const = 0;
};

/// The machine's own memory, in huge pages where the system has them.
MemorySource& host_memory();

}  // namespace bamtrain
