#pragma once
// The fused update of weights and optimizer state. See optimizer_step in ops/ops.h. The host rounds
// step-independent constants once from fp64. The kernel reads and rounds the step's factors
// (ops/optimizer_math.h), so that a step can be recorded and replayed.

#include <cmath>
#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

struct OptimizerScalars {
  float beta1 = 0, one_minus_beta1 = 1;  // one_minus_beta1 is rounded from fp64, as for beta2
  float beta2 = 0, one_minus_beta2 = 1;
  float eps = 0;
  float minimum = -INFINITY, maximum = INFINITY;
};

/// factor (1) = next_clip_factor of the old factor, squared_norm (1) and scale (1).
device::LaunchStatus clip_factor(double* factor, const double* squared_norm, double clip,
                                 const double* scale, device::Stream stream);

/// With g = factor * gradients; the factor is rounded to float. Null factor: 1. NaN: nothing is
/// written.
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w -= decay w;
///   w -= step_size m / (sqrt(v) v_scale + eps), or w -= step_size m where !adaptive;
///   w is clamped to [minimum, maximum]; NaN stays NaN;
///   copy = w rounded, if copy is not null.
/// weights, m, v, copy, gradients: (n). factors (4): decay, step_size, v_scale, and adaptive as 1
/// or 0. Results are bitwise identical to the CPU backend's where the CPU has fused multiply-adds:
/// they are explicit here, and the compiler forms the same ones there.
///
/// Accepts any n >= 1 and any addresses that the element types allow; fast if all are aligned to 16
/// bytes (copy: 8). Refuses other n and a null array.
device::LaunchStatus optimizer_step(float* weights, float* m, float* v, bf16* copy,
                                    const float* gradients, const double* factor, int64_t n,
                                    const double* factors, const OptimizerScalars& s,
                                    device::Stream stream);

}  // namespace bamtrain::kernels
