#pragma once
// The device under test in this folder: the CPU engine, or a GPU.

#include <cstdint>
#include <vector>

#include "ops/compare.h"

namespace bamtrain::testing {

/// A CUDA backend with its own memory; on a GPU, the memory of ops/host_view.h.
Device cuda_device();

/// Sequence lengths for tests whose cost grows with length, up to what the device can run in
/// reasonable time.
std::vector<int64_t> long_lengths();

}  // namespace bamtrain::testing
