#pragma once

#include <cstdint>

namespace bamtrain {

/// In the place of a target: nothing is asked for there, and nothing counts.
inline constexpr int32_t kNoTarget = -1;

}  // namespace bamtrain
