#include "core/memory_source.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/error.h"
#include "core/memory_limit.h"

namespace bamtrain {

namespace {

class HostMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override {
    check_fits(bytes);
    void* p = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      throw Error::fault(ExitCode::device, "memory plan",
                         fmt::format("allocation of {} MiB failed", bytes >> 20), kPlanRemedy);
    }
    madvise(p, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice only: failure costs speed
    return p;
  }

  void release(void* memory, int64_t bytes) override { munmap(memory, static_cast<size_t>(bytes)); }

  void check_fits(int64_t bytes) const override {
    const MemoryLimit limit = memory_limit();
    if (bytes <= limit.bytes) return;
    throw Error(ExitCode::device, "memory plan",
                fmt::format("at most {} MiB ({})", limit.bytes >> 20, limit.source),
                fmt::format("{} MiB", bytes >> 20), kPlanRemedy);
  }

  bool on_host() const override { return true; }
};

}  // namespace

MemorySource& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace bamtrain
