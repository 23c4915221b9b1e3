#pragma once
// A backend that wraps two: it runs every operation on both, from the same inputs, and compares the
// outputs. For finding a wrong operation, not for speed.

#include <memory>
#include <string>

#include "ops/ops.h"

namespace bamtrain {

/// The largest error allowed for an operation of `tested`: the norm of the difference over the norm
/// of the trusted result, and the largest difference over the largest element.
struct CheckLimits {
  double f32 = 1e-4;            // fp32 arrays: a sum of 10^6 terms, or an exp of a logit of 100
  double bf16 = 0.02;           // bf16 arrays, and fp32 arrays computed from them: five roundings
  double cancelling = 0.03125;  // of those, sums over rows whose terms sum to zero: intermediate
                                // roundings do not cancel, eight of them
  // The same for fp32 arrays: early in training such sums are 10^-3 of their terms.
  double cancelling_f32 = 0.005;
};

/// Computes with `tested` and compares with `trusted`. `trusted` gets copies of the inputs in its
/// own dtypes, and its results are discarded. If an operation exceeds the limits, throws Error
/// (ExitCode::internal) with the operation, the tensor and both values at the worst element.
///
/// The backend's dtypes, memory and results are those of `tested`.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> tested,
                                            std::unique_ptr<Backend> trusted,
                                            CheckLimits limits = {});

}  // namespace bamtrain
