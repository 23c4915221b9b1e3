#pragma once
// The known name that a misspelled one most likely means.

#include <string>
#include <vector>

namespace bamtrain {

/// The name here of what other programs call `word`: "lr" for learning_rate; empty if there is
/// none.
std::string name_here(const std::string& word);

/// Returns the candidate with the smallest edit distance to `word`, the first one on a tie. An
/// insertion, deletion, substitution or swap of neighbors costs one; case is ignored. A candidate
/// counts only if it is close: within a third of the longer word's length, at least one edit. A
/// prefix of a candidate, as long as `word` and at least three letters, may be as close instead. A
/// name that other programs use for a candidate (gpu for cuda) takes precedence, then the first
/// candidate that begins with the word. Returns an empty
/// string if no candidate is close, because another name would mislead.
std::string closest_match(const std::string& word, const std::vector<std::string>& candidates);

/// Returns a remedy: that name as a question, or `otherwise` if no candidate is close.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise);

/// The edit distance that closest_match minimizes.
size_t edit_distance(const std::string& a, const std::string& b);

}  // namespace bamtrain
