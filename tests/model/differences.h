#pragma once
// Compares a whole model's loss gradient with central differences.

#include "build.h"

namespace bamtrain::testing {

/// Checks up to `entries` elements of every parameter; all elements of priors and scales, but of
/// their large matrices two a row (long tests: all).
///
/// With h = 1e-5, a loss of about 4 has a rounding error of u 4 / h = 5e-11 and a truncation error
/// of h^2 f''' / 6 = 2e-11 f'''. Both are below 1e-6 of a tensor's largest gradient, or 2e-9 if the
/// whole tensor's gradient is close to zero (key biases under softmax). `trained_T`: 0 means the
/// batch's length. Networks over heads have kinks, which a smaller h crosses less often; its
/// rounding error is then 4e-10.
void check_differences(const ModelConfig& config, const Batch& batch, int64_t entries = 3,
                       int64_t trained_T = 0, double h = 1e-5);

}  // namespace bamtrain::testing
