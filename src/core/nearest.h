#pragma once
// The known name that a misspelt one most likely means.

#include <string>
#include <vector>

namespace bamtrain {

/// The candidate with the smallest edit distance to `word`: insertions, deletions, substitutions
/// and swaps of neighbours cost one each, upper and lower case are equal, the first of equals wins.
/// Empty where there is no candidate that shares anything with the word.
std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates);

/// The edit distance that nearest_name minimises.
size_t edit_distance(const std::string& a, const std::string& b);

/// Whether `word` is so near to `name` that it is a slip of the keyboard: at most 2 edits, or a
/// third of the word.
bool is_slip(const std::string& word, const std::string& name);

}  // namespace bamtrain
