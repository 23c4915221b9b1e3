#pragma once
// The bits that say where a normalizer leaves weight: for every kLiveRows rows a bit per tile of
// kLiveKeys keys, 32 of them a word.

#include <cstdint>

#include "core/host_device.h"

namespace bamtrain {

constexpr int64_t kLiveRows = 16, kLiveKeys = 64;
BAMTRAIN_HD constexpr int64_t live_groups(int64_t T) { return (T + kLiveRows - 1) / kLiveRows; }
BAMTRAIN_HD constexpr int64_t live_words(int64_t T) {
  return (T + 32 * kLiveKeys - 1) / (32 * kLiveKeys);
}

}  // namespace bamtrain
