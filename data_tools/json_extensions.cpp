#include "data_tools/json_extensions.h"

#include <algorithm>
#include <string_view>

#include "data_tools/utf16.h"

namespace bamtrain {
namespace {

constexpr size_t kEscape = 6;  // \uXXXX

/// The code unit whose escape begins at text[at], or -1.
int unit_at(std::string_view text, size_t at) {
  if (text.size() < at + kEscape || text[at] != '\\' || text[at + 1] != 'u') return -1;
  return code_unit_at(text, at + 2);
}

bool is_in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '+';
}

/// As first_lone_surrogate, from `at` on. REQUIRES: `at` is not inside an escape.
size_t next_lone_surrogate(std::string_view json, size_t at) {
  while ((at = json.find('\\', at)) != std::string_view::npos) {
    const int unit = unit_at(json, at);
    if (is_high_surrogate(unit) && is_low_surrogate(unit_at(json, at + kEscape))) {
      at += 2 * kEscape;
    } else if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
      return at;
    } else {
      at += 2;
    }
  }
  return at;
}

}  // namespace

void replace_non_finite(std::string* json) {
  if (json->find("NaN") == std::string::npos && json->find("Infinity") == std::string::npos) return;
  bool in_string = false;
  for (size_t at = 0; at < json->size(); ++at) {
    const char c = (*json)[at];
    if (in_string && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      if (at > 0 && is_in_word((*json)[at - 1])) continue;  // not inside another word
      for (const std::string_view word : {"NaN", "Infinity"}) {
        if (json->compare(at, word.size(), word) != 0) continue;
        std::fill_n(json->begin() + static_cast<std::ptrdiff_t>(at), word.size(), ' ');
        (*json)[at] = '0';
      }
    }
  }
}

size_t first_lone_surrogate(const std::string& json) { return next_lone_surrogate(json, 0); }

int64_t replace_lone_surrogates(std::string* json) {
  int64_t bytes = 0;
  for (size_t at = 0; (at = next_lone_surrogate(*json, at)) != std::string::npos; at += kEscape) {
    json->replace(at, kEscape, "\\ufffd");
    bytes += kEscape;
  }
  return bytes;
}

}  // namespace bamtrain
