#pragma once
// The fused update of weights and moments. See optimizer_step in ops/ops.h. What stays from step to
// step is rounded once from fp64 by the host; what does not, the factors of ops/optimizer_math.h,
// by the kernel, which reads them: a step can then be recorded and replayed.

#include <cmath>
#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

struct OptimizerScalars {
  float beta1 = 0, one_minus_beta1 = 1;  // the latter rounded from fp64, as beta2's
  float beta2 = 0, one_minus_beta2 = 1;
  float eps = 0;
  float minimum = -INFINITY, maximum = INFINITY;
};

/// factor (1) = next_clip_factor of what it was, squared_norm (1) and scale (1).
device::LaunchStatus clip_factor(double* factor, const double* squared_norm, double clip,
                                 const double* scale, device::Stream stream);

/// With g = factor * gradients, the factor rounded to float; null: 1; NaN: nothing is written:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w -= decay w;
///   w -= step_size m / (sqrt(v) v_scale + eps), or w -= step_size m where !adaptive;
///   w is brought between minimum and maximum; NaN stays NaN;
///   copy = w rounded, where copy is not null.
/// weights, m, v, copy, gradients: (n). factors (4): decay, step_size, v_scale, and adaptive as 1
/// or 0. The bits are those of the CPU backend where the CPU has fused multiply-adds: here they are
/// written out, there the compiler forms the same ones.
///
/// Any n >= 1 and any addresses that the element types allow; fast where all are aligned to
/// 16 bytes (copy: 8). Refuses other n and a null array.
device::LaunchStatus optimizer_step(float* weights, float* m, float* v, bf16* copy,
                                    const float* gradients, const double* factor, int64_t n,
                                    const double* factors, const OptimizerScalars& s,
                                    device::Stream stream);

}  // namespace bamtrain::kernels
