#pragma once
// Learned alphas of entmax: see normalizers/entmax.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// alphas (H) = 1 + softplus(theta (H)): one kernel. Refuses sizes that are not positive and
/// missing arrays.
device::LaunchStatus alpha_forward(float* alphas, const float* theta, int64_t H,
                                   device::Stream stream);

/// dtheta (H) += the sums of dalpha (B, H, T), in fp64 and in a fixed order, times the derivative:
/// one kernel. Refuses what the forward pass refuses.
device::LaunchStatus alpha_backward(float* dtheta, const float* dalpha, const float* theta,
                                    int64_t B, int64_t H, int64_t T, device::Stream stream);

}  // namespace bamtrain::kernels
