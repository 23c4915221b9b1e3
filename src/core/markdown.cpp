#include "core/markdown.h"

#include "core/utf8.h"

namespace bamtrain {

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*[<|&").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out;
}

}  // namespace bamtrain
