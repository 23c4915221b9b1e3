#pragma once
// The device that the tests of this folder run on: the CPU engine, or a GPU.

#include "ops/compare.h"

namespace bamtrain::testing {

/// A CUDA backend with memory that the host can read and write too.
Device cuda_device();

}  // namespace bamtrain::testing
