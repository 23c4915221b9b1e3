#pragma once
// Cross entropy over rows of logits, and the sum of its losses. See cross_entropy in ops/ops.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// A: float or bf16, the type of the gradient.
template <class A>
struct CrossEntropy {
  int64_t R = 0, V = 0;              // V: any number
  float* losses = nullptr;           // (R), written
  A* dlogits = nullptr;              // (R, V), written; null: losses only
  int64_t dlogits_row = 0;           // row stride in elements: a multiple of 4, >= V
  const float* logits = nullptr;     // (R, V)
  int64_t logits_row = 0;            // likewise
  const int32_t* targets = nullptr;  // (R), in [0, V), or kIgnoreIndex
  double scale = 1;
};

/// losses = -log softmax(logits)[target]; dlogits = scale * (softmax - one hot), and 0 from column
/// V to the end of a row. Both are 0 in a row without a target, whose logits are not read. dlogits
/// may share the logits' memory, with A = float.
///
/// A loss l is within 1e-6 max(1, l) for V <= 2^17 and any logits that are finite and whose
/// differences fit in fp32. A logit that is NaN or +inf makes its row's loss NaN.
///
/// Refuses sizes that are not positive or exceed 2^30, row strides that are not multiples of 4 or
/// are below V, and addresses that are not aligned to 16 bytes (dlogits in bf16: 8).
template <class A>
device::LaunchStatus cross_entropy(const CrossEntropy<A>& c, device::Stream stream);

}  // namespace bamtrain::kernels
