#pragma once
// No prior.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo nope_prior();

}  // namespace bamtrain
