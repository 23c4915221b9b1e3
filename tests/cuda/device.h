#pragma once
// The device that the tests of this folder run on: the CPU engine, or a GPU.

#include <cstdint>
#include <vector>

#include "ops/compare.h"

namespace bamtrain::testing {

/// A CUDA backend with its own memory, that of ops/host_view.h on a GPU.
Device cuda_device();

/// Lengths of sequences for what grows with them, up to what the device has time for.
std::vector<int64_t> long_lengths();

}  // namespace bamtrain::testing
