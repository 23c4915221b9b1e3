#pragma once
// The measured peak matmul throughput, relative to which MFU is computed.

#include <functional>

#include "core/tensor.h"
#include "ops/ops.h"

namespace bamtrain {

/// The fewest seconds of a call of seconds_of_one(): of as many until none was a hundredth faster
/// than those before it for 10 ms, or until all of them took 50.
double fewest_seconds(const std::function<double()>& seconds_of_one);

/// FLOP/s of matrix products of `activations` on this backend: the best of several. On a host this
/// takes 10 to 50 ms (or two products if they take longer), and a few MiB. Other programs take
/// cores away for milliseconds to minutes, so only the best of several such measurements comes near
/// the machine's peak. On a device, products grow until one takes a millisecond, up to 2 * 8,192^3
/// FLOPs and 768 MiB, or until the next would not fit. So call it before the run's memory is
/// allocated. Throws Error if the backend has no such products, or no room for those of 1,024^3.
double measure_peak_matmul(Backend& backend, Dtype activations);

}  // namespace bamtrain
