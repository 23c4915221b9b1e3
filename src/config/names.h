#pragma once
// Names in messages: the nearest known one, and lists.

#include <string>
#include <vector>

namespace bamtrain {

/// The candidate with the smallest edit distance to `word`: insertions, deletions, substitutions
/// and swaps of neighbours cost one each, upper and lower case are equal, the first of equals wins.
/// Empty where there is no candidate that shares anything with the word.
std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates);

/// The edit distance that nearest_name minimises.
size_t edit_distance(const std::string& a, const std::string& b);

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace bamtrain
