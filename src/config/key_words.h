#pragma once
// A configuration's keys and their values as people type them, for completion by shells.

#include <string>
#include <vector>

namespace bamtrain {

struct KeyWords {
  std::string path, description;
  /// What the value can be, where it is one of some words; the names of a key's mechanisms.
  std::vector<std::string> words = {};
  bool any_text = false;  // it is a text; a file's name, for example
};

/// The keys, in the order of documentation.
std::vector<KeyWords> key_words();
/// The sections that hold them, without words.
std::vector<KeyWords> section_words();

}  // namespace bamtrain
