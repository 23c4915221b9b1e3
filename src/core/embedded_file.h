#pragma once
// A file that is embedded in the program.

#include <string_view>

namespace bamtrain {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view text;  // UTF-8
};

}  // namespace bamtrain
