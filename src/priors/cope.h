#pragma once
// CoPE, contextual position encoding (Golovneva et al. 2024): the bias of ops/mechanisms/cope.h.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo cope_prior();

}  // namespace bamtrain
