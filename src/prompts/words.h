#pragma once
// English words to draw from. RULER uses the package wonderwords; ours is a smaller list of our
// own, so that no other project's data is copied. Prompts have RULER's form but other words. Lower
// case, letters only, no duplicates.

#include <string>
#include <vector>

namespace bamtrain {

const std::vector<std::string>& adjectives();
const std::vector<std::string>& nouns();
/// Adjectives and nouns.
const std::vector<std::string>& words();

}  // namespace bamtrain
