#pragma once
// A bit mask of the tiles with nonzero weight: for every kLiveRows rows, one bit per tile of
// kLiveKeys keys, in words of 32 bits.

#include <cstdint>

#include "core/host_device.h"

namespace bamtrain {

constexpr int64_t kLiveRows = 16, kLiveKeys = 64;
BAMTRAIN_HD constexpr int64_t live_groups(int64_t T) { return (T + kLiveRows - 1) / kLiveRows; }
BAMTRAIN_HD constexpr int64_t live_words(int64_t T) {
  return (T + 32 * kLiveKeys - 1) / (32 * kLiveKeys);
}

}  // namespace bamtrain
