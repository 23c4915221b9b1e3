#pragma once
// UTF-16 code units in JSON escapes.

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace bamtrain {

inline bool is_high_surrogate(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
inline bool is_low_surrogate(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

/// The value of the four hex digits at text[at]; -1 if they are missing.
inline int code_unit_at(std::string_view text, size_t at) {
  unsigned unit = 0;
  if (text.size() < at + 4) return -1;
  const char *const begin = text.data() + at, *const end = begin + 4;
  const auto [stop, error] = std::from_chars(begin, end, unit, 16);
  return error == std::errc() && stop == end ? static_cast<int>(unit) : -1;
}

}  // namespace bamtrain
