#include "prompts/python_text.h"

#include <utf8proc.h>

#include "core/error.h"
#include "core/utf8.h"

namespace bamtrain {

namespace {

/// str.isspace of one character: bidirectional class WS, B or S, or general category Zs.
bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

void append_utf8(std::string* text, utf8proc_int32_t character) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(character, bytes);
  text->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

}  // namespace

std::string_view without_space_behind(std::string_view text) {
  while (!text.empty()) {
    const size_t last = utf8_boundary_before(text, text.size() - 1);
    if (!is_space(utf8_character_at(text, last).code)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view without_space_around(std::string_view text) {
  text = without_space_behind(text);
  while (!text.empty()) {
    const Utf8Character first = utf8_character_at(text, 0);
    if (!is_space(first.code)) break;
    text.remove_prefix(first.bytes);
  }
  return text;
}

std::string capitalized(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = utf8_character_at(text, at);
    const auto code = static_cast<utf8proc_int32_t>(c.code);
    append_utf8(&out, at == 0 ? utf8proc_totitle(code) : utf8proc_tolower(code));
    at += c.bytes;
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  require(!part.empty(), "a part to replace");
  std::string out;
  for (size_t found = 0; (found = text.find(part)) != std::string_view::npos;) {
    out.append(text.substr(0, found)).append(by);
    text.remove_prefix(found + part.size());
  }
  return out.append(text);
}

int64_t characters_of(std::string_view text) {
  int64_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += utf8_character_at(text, at).bytes;
  return n;
}

}  // namespace bamtrain
