#pragma once

#include <cstdint>

namespace bamtrain {

/// The target of a position without loss (PyTorch's ignore_index).
inline constexpr int32_t kIgnoreIndex = -1;

}  // namespace bamtrain
