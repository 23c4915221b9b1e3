#pragma once
// Every mix of heads by name.

#include <string>
#include <vector>

#include "mixes/mix.h"

namespace bamtrain {

const std::vector<MixInfo>& all_mixes();

/// The mix of that name, or null.
const MixInfo* find_mix(const std::string& name);

}  // namespace bamtrain
