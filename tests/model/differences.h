#pragma once
// The gradient of the loss of a whole model against central differences.

#include "build.h"

namespace bamtrain::testing {

/// Checks up to `entries` elements of every parameter, all of a prior's and a scale's.
///
/// With h = 1e-5 the rounding of a loss of about 4 is u 4 / h = 5e-11 and the truncation
/// h^2 f''' / 6 = 2e-11 f''': below 1e-6 of a tensor's largest gradient, or 2e-9 where the whole
/// tensor has next to none (key biases under softmax).
/// `trained_T` is the batch's length unless told. Networks over heads have kinks, which a smaller h
/// is less often across: the rounding is then 4e-10.
void check_differences(const ModelConfig& config, const Batch& batch, int64_t entries = 3,
                       int64_t trained_T = 0, double h = 1e-5);

}  // namespace bamtrain::testing
