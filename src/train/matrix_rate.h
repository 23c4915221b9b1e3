#pragma once
// The rate that a run's speed is compared with.

#include "core/tensor.h"
#include "ops/ops.h"

namespace bamtrain {

/// FLOP/s of matrix products of `activations` on this backend: the best of several. On a host that
/// takes 50 ms, or two products where they take longer, and a few MiB; other programs take cores
/// away for milliseconds to minutes, so that only the best of several such measurements comes near
/// what the machine can do. On a device it is five products, once, and takes up to 768 MiB: to be
/// called before a run's own memory is taken. Error where the backend has no such products.
double measure_matrix_rate(Backend& backend, Dtype activations);

}  // namespace bamtrain
