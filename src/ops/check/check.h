#pragma once
// A backend that runs two: every operation on both, from the same inputs, and compares what they
// write. For finding the operation that is wrong, not for speed.

#include <memory>
#include <string>

#include "ops/ops.h"

namespace bamtrain {

/// The largest error that an operation of `tested` may show: the norm of the difference over the
/// norm of the trusted result, and the largest difference over the largest element.
struct CheckLimits {
  double f32 = 1e-4;   // of arrays in fp32: a sum of 10^6 terms, or an exp of a logit of 100
  double bf16 = 0.02;  // of arrays in bf16, and of fp32 arrays formed from them: five roundings
  double cancelling = 0.03125;  // of those which are sums over rows whose terms sum to zero: what
                                // is rounded on the way does not cancel, eight roundings
  // The same of arrays in fp32: at the beginning of a training such sums are 10^-3 of their terms.
  double cancelling_f32 = 0.005;
};

/// Computes with `tested` and compares with `trusted`, whose inputs are copies of the former's in
/// its own dtypes and whose results are thrown away. An operation past the limits is an Error
/// (ExitCode::internal) that names it, the tensor and both values at the worst place.
///
/// The backend's dtypes, memory and results are those of `tested`.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> tested,
                                            std::unique_ptr<Backend> trusted,
                                            CheckLimits limits = {});

}  // namespace bamtrain
