#pragma once
// Well-formed UTF-8 (The Unicode Standard, table 3-7): no overlong forms, no surrogates, nothing
// past U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

namespace bamtrain {

/// Position of the first byte of `text` that belongs to no well-formed sequence, or npos.
size_t first_invalid_utf8(std::string_view text);

/// `text` with U+FFFD for each maximal part of an ill-formed sequence (the Unicode Standard,
/// section 3.9: what Python's errors="replace" and browsers do).
std::string replace_invalid_utf8(std::string_view text);

}  // namespace bamtrain
