#pragma once
// The known name that a misspelt one most likely means.

#include <string>
#include <vector>

namespace bamtrain {

/// The candidate with the smallest edit distance to `word`: insertions, deletions, substitutions
/// and swaps of neighbours cost one each, upper and lower case are equal, the first of equals wins.
/// Candidates count that the word nearly is: within a third of the longer one's length, one edit at
/// least; or whose beginning of the word's length, three letters at least, is as near to it. Before
/// all of them the one that other programs call `word`, as cuda of gpu. Empty where there is none:
/// another name would mislead.
std::string closest_match(const std::string& word, const std::vector<std::string>& candidates);

/// A remedy: that name as a question, or `otherwise` where there is none.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise);

/// The edit distance that closest_match minimises.
size_t edit_distance(const std::string& a, const std::string& b);

}  // namespace bamtrain
