#pragma once
// The device that the tests of this folder run on: the CPU engine, or a GPU.

#include <cstdint>
#include <vector>

#include "ops/compare.h"

namespace bamtrain::testing {

/// A CUDA backend with memory that the host can read and write too.
Device cuda_device();

/// Lengths of sequences for what grows with them, up to what the device has time for.
std::vector<int64_t> long_lengths();

}  // namespace bamtrain::testing
