#pragma once
// Files that the program carries in itself; embed.py writes the functions.

#include <span>
#include <string_view>

namespace bamtrain {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view text;  // UTF-8
};

/// The pages of docs/ but config.md.
std::span<const EmbeddedFile> documentation();

}  // namespace bamtrain
