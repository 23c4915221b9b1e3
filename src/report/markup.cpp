#include "report/markup.h"

#include <fmt/format.h>

#include <cctype>

#include "core/utf8.h"

namespace bamtrain {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : replace_controls(replace_invalid_utf8(text))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string url_path(std::string_view path) {
  constexpr std::string_view kKept = "-._~/";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = byte < 0x80 && (std::isalnum(byte) != 0 || kKept.find(c) != kKept.npos);
    out += kept ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace bamtrain
