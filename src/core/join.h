#pragma once
// Lists in messages.

#include <string>
#include <vector>

namespace bamtrain {

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace bamtrain
