#pragma once
// Every logit scale by name.

#include <string>
#include <vector>

#include "scales/scale.h"

namespace bamtrain {

const std::vector<ScaleInfo>& all_scales();

/// The scale of that name, or null.
const ScaleInfo* find_scale(const std::string& name);

}  // namespace bamtrain
