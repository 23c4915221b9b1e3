#pragma once
// English words to draw from. RULER takes them from the package wonderwords; these are a list of
// our own, smaller, so that no other project's data is copied: the words of a prompt differ from
// RULER's, its form does not. Lower case, of letters alone, no word twice.

#include <string>
#include <vector>

namespace bamtrain {

const std::vector<std::string>& adjectives();
const std::vector<std::string>& nouns();
/// Both.
const std::vector<std::string>& words();

}  // namespace bamtrain
