#pragma once
// One block of memory per device, sized before the first step; every allocation has a name.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/memory_source.h"
#include "core/tensor.h"

namespace bamtrain {

/// Two phases: `add` registers named tensors; `commit` allocates the memory (zero-filled, 64-byte
/// aligned) and sets their data pointers. In between, shapes are known and pointers are null; this
/// is what --dry-run prints.
class Arena {
 public:
  struct Entry {
    std::string name;   // e.g. "activations.layers.qkv"
    std::string group;  // the part before the first dot, for the memory table
    Dtype dtype = Dtype::f32;
    int64_t bytes = 0;  // rounded up to the alignment
    int64_t offset = 0;
    Tensor* target = nullptr;  // must outlive commit()
  };

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Registers `*target`; its shape and dtype are set now, its data at commit().
  /// REQUIRES: before commit; `target` keeps its address until then.
  void add(const std::string& name, Tensor* target, Dtype dtype,
           std::initializer_list<int64_t> dims);

  /// Allocates the memory. Throws Error (ExitCode::device) if the source has too little. The source
  /// must outlive the arena.
  void commit(MemorySource& source = host_memory());

  int64_t total_bytes() const { return total_; }
  const std::vector<Entry>& entries() const { return entries_; }

  /// A table of groups and their largest tensors, one line each, in MiB.
  std::string table() const;

 private:
  std::vector<Entry> entries_;
  int64_t total_ = 0;
  char* memory_ = nullptr;
  MemorySource* source_ = nullptr;
};

}  // namespace bamtrain
