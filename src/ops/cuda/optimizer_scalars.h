#pragma once
// The factors of an optimizer step as its kernel takes them.

#include "kernels/optimizer.h"
#include "ops/optimizer_math.h"

namespace bamtrain::cuda {

/// Each rounded once from fp64, as the CPU backend rounds them.
inline kernels::OptimizerScalars optimizer_scalars(const OptimizerStep& s) {
  const OptimizerFactors f = optimizer_factors(s);
  kernels::OptimizerScalars x;
  x.beta1 = static_cast<float>(s.beta1);
  x.one_minus_beta1 = static_cast<float>(1 - s.beta1);
  x.beta2 = static_cast<float>(s.beta2);
  x.one_minus_beta2 = static_cast<float>(1 - s.beta2);
  x.decay = static_cast<float>(f.decay);
  x.step_size = static_cast<float>(f.step_size);
  x.v_scale = static_cast<float>(f.v_scale);
  x.eps = static_cast<float>(s.eps);
  x.minimum = static_cast<float>(s.minimum);
  x.maximum = static_cast<float>(s.maximum);
  x.adaptive = f.adaptive;
  return x;
}

}  // namespace bamtrain::cuda
