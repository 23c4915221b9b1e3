#pragma once
// The measured peak matmul throughput, to which MFU refers.

#include "core/tensor.h"
#include "ops/ops.h"

namespace bamtrain {

/// FLOP/s of matrix products of `activations` on this backend: the best of several. On a host that
/// takes 50 ms, or two products where they take longer, and a few MiB; other programs take cores
/// away for milliseconds to minutes, so that only the best of several such measurements comes near
/// what the machine can do. On a device they grow until one takes a millisecond, up to 8,192^3
/// FLOPs times 2 and 768 MiB, or until the next would not fit: to be called before a run's own
/// memory is taken. Error where the backend has no such products, or no room for those of 1,024^3.
double measure_peak_matmul(Backend& backend, Dtype activations);

}  // namespace bamtrain
