#pragma once
// One block of memory per device, sized before the first step; every allocation has a name.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace bamtrain {

/// Two phases: `add` registers named tensors; `commit` takes the memory (zero-filled, 64-byte
/// aligned) and fills in their data pointers. Between the two, shapes are known and pointers are
/// null, which is what --dry-run prints.
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

  /// Takes the memory. Error (ExitCode::device) where the system has too little.
  void commit();
  /// Error (ExitCode::device) where the plan, with `beside` bytes of other memory, exceeds what
  /// this process may use (core/memory_limit.h).
  void check_fits(int64_t beside = 0) const;

  int64_t total_bytes() const { return total_; }
  const std::vector<Entry>& entries() const { return entries_; }

  /// A table of groups and their largest tensors, one line each, in MiB.
  std::string table() const;

 private:
  std::vector<Entry> entries_;
  int64_t total_ = 0;
  char* memory_ = nullptr;
};

}  // namespace bamtrain
