#pragma once
// Every normalizer by name.

#include <string>
#include <vector>

#include "normalizers/normalizer.h"

namespace bamtrain {

const std::vector<NormalizerInfo>& all_normalizers();

/// The normalizer of that name, or null.
const NormalizerInfo* find_normalizer(const std::string& name);

}  // namespace bamtrain
