#pragma once
// Cable and KCable: the bias is a function of S_j - S_i, where S is the running sum of
// softplus(W x + w0) per head (priors/softplus.h).

#include "priors/prior.h"

namespace bamtrain {

PriorInfo cable_prior();
PriorInfo kcable_prior();

}  // namespace bamtrain
