#pragma once
// Absolute positions added to the token embedding: a learned table (DAPE, table 2).

#include "priors/prior.h"

namespace bamtrain {

PriorInfo learned_prior();

}  // namespace bamtrain
