#include "core/utf8.h"

#include <cstring>

namespace bamtrain {

namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_shown(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return first <= code && code <= last;
  };
  if (code == '\t' || code == '\n') return true;
  const bool control = code < 0x20 || within(0x7F, 0x9F), breaks = within(0x2028, 0x2029),
             turns = within(0x202A, 0x202E) || within(0x2066, 0x2069),
             noncharacter = within(0xFDD0, 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
  return !control && !breaks && !turns && !noncharacter;
}

}  // namespace

Utf8Character utf8_character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  if (first < 0xC2 || first > 0xF4) return {first, 1, false};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range is narrower than 80..BF after these four.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  uint32_t code = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const bool follows = at + i < text.size() && byte(i) >= (i == 1 ? low : 0x80u) &&
                         byte(i) <= (i == 1 ? high : 0xBFu);
    if (!follows) return {first, i, false};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, length, true};
}

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    while (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) != 0) break;
      at += sizeof eight;
    }
    if (at == text.size()) break;
    const Utf8Character c = utf8_character_at(text, at);
    if (!c.valid) return at;
    at += c.bytes;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const size_t valid = first_invalid_utf8(text);
    out.append(text.substr(0, valid));
    if (valid == std::string_view::npos) return out;
    out.append(kReplacement);
    text.remove_prefix(valid + utf8_character_at(text, valid).bytes);
  }
}

std::string replace_controls(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = utf8_character_at(text, at);
    out.append(!c.valid || is_shown(c.code) ? text.substr(at, c.bytes) : kReplacement);
    at += c.bytes;
  }
  return out;
}

}  // namespace bamtrain
