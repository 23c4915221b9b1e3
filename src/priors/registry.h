#pragma once
// Every prior by name.

#include <string>
#include <vector>

#include "priors/prior.h"

namespace bamtrain {

const std::vector<PriorInfo>& all_priors();

/// The prior of that name, or null.
const PriorInfo* find_prior(const std::string& name);

}  // namespace bamtrain
