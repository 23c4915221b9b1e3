#pragma once
// Kernels of a mechanism, found by its name.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bamtrain::kernels {

/// The entry of that name, or null; `name` may be null.
template <class Kernels, size_t kCount>
const Kernels* find_kernels(const std::array<Kernels, kCount>& all, const char* name) {
  for (const Kernels& k : all) {
    if (name != nullptr && std::strcmp(k.name, name) == 0) return &k;
  }
  return nullptr;
}

constexpr int64_t kMaxHeads = 0xFFFF;  // blocks that fit the y dimension of a grid
inline bool is_head_count(int64_t H) { return H >= 1 && H <= kMaxHeads; }

}  // namespace bamtrain::kernels
