#pragma once
// Names in messages: the nearest known one (core/nearest.h), and lists.

#include <string>
#include <vector>

#include "core/nearest.h"

namespace bamtrain {

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace bamtrain
