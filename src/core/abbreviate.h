#pragma once
// Shortens long texts for messages.

#include <cstddef>
#include <string>

namespace bamtrain {

/// Returns the text, or its beginning and "..." if it is longer than `limit` bytes. Never splits a
/// UTF-8 sequence.
inline std::string abbreviate(const std::string& text, size_t limit = 80) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace bamtrain
