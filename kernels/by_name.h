#pragma once
// Looks up the kernels of a mechanism by name.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bamtrain::kernels {

/// Returns the entry with that name, or null; `name` may be null.
template <class Kernels, size_t kCount>
const Kernels* find_kernels(const std::array<Kernels, kCount>& all, const char* name) {
  for (const Kernels& k : all) {
    if (name != nullptr && std::strcmp(k.name, name) == 0) return &k;
  }
  return nullptr;
}

constexpr int64_t kMaxHeads = 0xFFFF;  // the limit of a grid's y dimension
inline bool is_head_count(int64_t H) { return H >= 1 && H <= kMaxHeads; }

}  // namespace bamtrain::kernels
