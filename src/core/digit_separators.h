#pragma once
// Digits in groups, as people write them on a command line: 1_000.

#include <cctype>
#include <string>

namespace bamtrain {

/// "1000" for "1_000". A separator stands between two digits; a text with one elsewhere is returned
/// as it is.
inline std::string without_separators(const std::string& text) {
  const auto is_digit = [&text](size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return text;
    }
  }
  return digits;
}

}  // namespace bamtrain
