#pragma once
// p_ij = exp(z_ij) / sum_k exp(z_ik).
//
// level: log sum_k exp(z_ik).

#include "normalizers/traits.h"

namespace bamtrain {

BAMTRAIN_HD constexpr NormalizerTraits softmax_traits() { return {.fused = true}; }

struct NormalizerInfo;
NormalizerInfo softmax_normalizer();

}  // namespace bamtrain
