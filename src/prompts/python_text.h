#pragma once
// Texts as Python's str takes them: lm-evaluation-harness forms its prompts by these methods, and
// ours are to be the same to the byte. Texts are valid UTF-8, as JSON's are.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// str.rstrip and str.strip: without the characters at the end, or at both ends, that str.isspace
/// knows, those of Unicode among them.
std::string_view without_space_behind(std::string_view text);
std::string_view without_space_around(std::string_view text);

/// str.capitalize: the first character as in titles, the others in lower case. A character that
/// becomes several there (the first of "ßen"), and a sigma that ends a word, follow Unicode's
/// mappings of single characters here.
std::string capitalized(std::string_view text);

/// str.replace: from left to right, none that overlaps the one before. REQUIRES: `part` is not
/// empty.
std::string replaced(std::string_view text, std::string_view part, std::string_view by);

/// len(): code points.
int64_t characters_of(std::string_view text);

}  // namespace bamtrain
