#pragma once
// Transformer-XL's relative positions (Dai et al. 2019; DAPE, appendix F): b = (<q + w, r_d> +
// <u, k>) / sqrt(D), r_d the head's part of w_r sinusoid(d). Distances are exact integers of any
// size. Attention's part: ops/mechanisms/transformer_xl.h.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo transformer_xl_prior();

}  // namespace bamtrain
