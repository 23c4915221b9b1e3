#pragma once
// RULER's answer scores.

#include <string>
#include <vector>

namespace bamtrain {

/// Share of the references found anywhere in `output`, ignoring the case of ASCII letters.
/// REQUIRES: at least one reference.
double string_match(const std::string& output, const std::vector<std::string>& references);

/// 1 if any reference is found, else 0: for questions with several right answers, RULER's qa.
double string_match_any(const std::string& output, const std::vector<std::string>& references);

}  // namespace bamtrain
