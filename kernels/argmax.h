#pragma once
// The place of a row's largest element. See argmax in ops/ops.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// places (R) = of each row of x (R, V), rows x_row elements apart, where its largest element is;
/// of equal ones the first; elements that are NaN are passed over, and 0 where all are. Refuses
/// sizes that are not positive or pass 2^30, rows shorter than V and null pointers.
device::LaunchStatus argmax(int32_t* places, const float* x, int64_t R, int64_t V, int64_t x_row,
                            device::Stream stream);

}  // namespace bamtrain::kernels
