#include "report/markup.h"

#include <nlohmann/json.hpp>

namespace bamtrain {

namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

/// The JSON library knows UTF-8: written and read back, what is none is replaced.
std::string valid_utf8(std::string_view text) {
  using nlohmann::json;
  const json written = std::string(text);
  return json::parse(written.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
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
      case '\t':
      case '\n':
        out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += kReplacement;
        } else {
          out += c;
        }
    }
  }
  return out;
}

}  // namespace bamtrain
