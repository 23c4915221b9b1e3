#pragma once
// Long texts cut short for messages.

#include <cstddef>
#include <string>

namespace bamtrain {

/// The text itself, or its beginning and "..." where it is longer than `limit` bytes; a UTF-8
/// sequence is never cut in two.
inline std::string abbreviate(const std::string& text, size_t limit = 80) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace bamtrain
