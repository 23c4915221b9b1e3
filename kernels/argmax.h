#pragma once
// The index of each row's largest element. See argmax in ops/ops.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// places (R): the index of the largest element of each row of x (R, V), whose rows are x_row
/// elements apart. The first of equal ones; NaN is skipped, and a row of only NaN gives 0. Refuses
/// sizes that are not positive or exceed 2^30, rows shorter than V and null pointers.
device::LaunchStatus argmax(int32_t* places, const float* x, int64_t R, int64_t V, int64_t x_row,
                            device::Stream stream);

}  // namespace bamtrain::kernels
