#include "core/wrap.h"

#include <sstream>

namespace bamtrain {

std::string wrapped(const std::string& lead, const std::string& text, size_t indent,
                    size_t columns) {
  std::string out, line = lead;
  bool fresh = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!fresh && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  return out + line + "\n";
}

}  // namespace bamtrain
