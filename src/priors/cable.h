#pragma once
// Cable and KCable: the bias is a function of S_j - S_i, S the running sum of the softplus of gates
// (priors/softplus.h) W x + w0 per head.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo cable_prior();
PriorInfo kcable_prior();

}  // namespace bamtrain
