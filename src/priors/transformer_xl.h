#pragma once
// Transformer-XL's relative positions (Dai et al. 2019; DAPE, appendix F): b = (<q + w, r_d> +
// <u, k>) / sqrt(D), where r_d is the head's part of w_r sinusoid(d). Distances are exact integers
// of any size. For the attention side see ops/mechanisms/transformer_xl.h.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo transformer_xl_prior();

}  // namespace bamtrain
