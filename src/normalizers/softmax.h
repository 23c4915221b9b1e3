#pragma once
// p_ij = exp(z_ij) / sum_k exp(z_ik).
//
// AttentionSaved: level is lse, log sum_k exp(z_ik).

#include "normalizers/traits.h"

namespace bamtrain {

struct NormalizerInfo;

struct Softmax {
  BAMTRAIN_HD static constexpr NormalizerTraits traits() { return {.fused = true}; }
  static NormalizerInfo info();
};

}  // namespace bamtrain
