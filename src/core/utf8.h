#pragma once
// Well-formed UTF-8 (The Unicode Standard, table 3-7): no overlong forms, no surrogates, nothing
// past U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// One character of a text.
struct Utf8Character {
  uint32_t code = 0;   // the code point; the first byte of an ill-formed sequence
  size_t bytes = 0;    // length of the sequence; if ill-formed, of its longest prefix that could
                       // start a well-formed one, at least 1
  bool valid = false;  // well-formed
};

/// The character that begins at text[at]. REQUIRES: at < text.size().
Utf8Character utf8_character_at(std::string_view text, size_t at);

/// Position of the first byte of `text` that is not part of a well-formed sequence, or npos.
size_t first_invalid_utf8(std::string_view text);

/// `text` with U+FFFD for each maximal part of an ill-formed sequence (the Unicode Standard,
/// section 3.9: what Python's errors="replace" and browsers do).
std::string replace_invalid_utf8(std::string_view text);

/// `text` with U+FFFD for:
/// - each control character (U+0000 to U+001F, U+007F to U+009F) except tab and newline, because it
///   may move a terminal's cursor or change its settings;
/// - line and paragraph separators (U+2028, U+2029);
/// - characters that reverse the text after them (U+202A to U+202E, U+2066 to U+2069);
/// - the 66 noncharacters such as U+FFFE, which are invalid in XML.
std::string replace_controls(std::string_view text);

/// `text` with both replaced: safe to print to a terminal, for names and texts from elsewhere.
inline std::string printable(std::string_view text) {
  return replace_controls(replace_invalid_utf8(text));
}

/// The last position up to `at` where `text` can be cut without splitting a character.
/// REQUIRES: at < text.size(), valid UTF-8 before `at`.
inline size_t utf8_boundary_before(std::string_view text, size_t at) {
  constexpr size_t kLongest = 4;
  const size_t last = at < kLongest ? 0 : at - kLongest + 1;
  while (at > last && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace bamtrain
