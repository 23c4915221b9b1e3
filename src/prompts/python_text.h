#pragma once
// Python's str methods: lm-evaluation-harness forms its prompts with them, and ours must match byte
// for byte. Texts are valid UTF-8, like JSON strings.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// str.rstrip and str.strip: removes characters for which str.isspace holds, including Unicode's,
/// at the end or at both ends.
std::string_view without_space_behind(std::string_view text);
std::string_view without_space_around(std::string_view text);

/// str.capitalize: the first character in title case, the others in lower case. Unlike Python, it
/// uses Unicode's single-character mappings for characters that expand (the first of "ßen") and for
/// a sigma at the end of a word.
std::string capitalized(std::string_view text);

/// str.replace: from left to right, without overlaps. REQUIRES: `part` is not empty.
std::string replaced(std::string_view text, std::string_view part, std::string_view by);

/// len(): code points.
int64_t characters_of(std::string_view text);

}  // namespace bamtrain
