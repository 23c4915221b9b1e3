#pragma once

#include <cstdint>

namespace bamtrain {

/// In place of a target: the position has no loss (PyTorch's ignore_index).
inline constexpr int32_t kIgnoreIndex = -1;

}  // namespace bamtrain
