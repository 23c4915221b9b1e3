#include "report/markup.h"

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

}  // namespace bamtrain
