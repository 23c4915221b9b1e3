#pragma once
// The constants of an optimizer pass, as its kernel takes them.

#include "kernels/optimizer.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

/// Each is rounded once from fp64, as in the CPU backend.
inline kernels::OptimizerScalars optimizer_scalars(const OptimizerHyperparameters& r) {
  kernels::OptimizerScalars x;
  x.beta1 = static_cast<float>(r.beta1);
  x.one_minus_beta1 = static_cast<float>(1 - r.beta1);
  x.beta2 = static_cast<float>(r.beta2);
  x.one_minus_beta2 = static_cast<float>(1 - r.beta2);
  x.eps = static_cast<float>(r.eps);
  x.minimum = static_cast<float>(r.minimum);
  x.maximum = static_cast<float>(r.maximum);
  return x;
}

}  // namespace bamtrain::cuda
