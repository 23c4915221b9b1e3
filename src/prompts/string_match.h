#pragma once
// RULER's score of an answer.

#include <string>
#include <vector>

namespace bamtrain {

/// The share of the references that are found in `output`, anywhere, the case of ASCII letters
/// ignored. REQUIRES: one reference at least.
double string_match(const std::string& output, const std::vector<std::string>& references);

}  // namespace bamtrain
