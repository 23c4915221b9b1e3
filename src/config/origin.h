#pragma once
// Where a key's value was written, for messages.

#include <string>
#include <utility>
#include <vector>

namespace bamtrain {

/// Whether `path` is `tree` or lies below it: "model.norm.eps" below "model.norm".
inline bool lies_in(const std::string& path, const std::string& tree) {
  return path.compare(0, tree.size(), tree) == 0 &&
         (path.size() == tree.size() || path[tree.size()] == '.');
}

struct Origin {
  std::string file;  // empty: no file, a struct filled by a program
  /// Key and text of each override, in the order given.
  std::vector<std::pair<std::string, std::string>> overrides = {};

  /// "run.json: key", or "--set model.width=3: key" where an override wrote it.
  std::string at(const std::string& key) const {
    for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
      if (lies_in(key, it->first)) return "--set " + it->second + ": " + key;
    }
    return file.empty() ? key : file + ": " + key;
  }
};

}  // namespace bamtrain
