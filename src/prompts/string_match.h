#pragma once
// RULER's scores of an answer.

#include <string>
#include <vector>

namespace bamtrain {

/// The share of the references that are found in `output`, anywhere, the case of ASCII letters
/// ignored. REQUIRES: one reference at least.
double string_match(const std::string& output, const std::vector<std::string>& references);

/// 1 where any of them is, else 0: of questions with several right answers, RULER's qa.
double string_match_any(const std::string& output, const std::vector<std::string>& references);

}  // namespace bamtrain
