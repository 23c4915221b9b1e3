#pragma once
// Where a key's value was written, for messages.

#include <string>
#include <vector>

#include "core/abbreviate.h"

namespace bamtrain {

/// Whether `path` is `tree` or lies below it: "model.norm.eps" below "model.norm".
inline bool lies_in(const std::string& path, const std::string& tree) {
  return path.compare(0, tree.size(), tree) == 0 &&
         (path.size() == tree.size() || path[tree.size()] == '.');
}

/// One --set.
struct OverrideOrigin {
  std::string path;  // "a.b.c"
  std::string text;  // as given, abbreviated
  /// The first part of the path that was not there before: "a.b", or the whole path.
  std::string created;
};

struct Origin {
  std::string file;                            // empty: no file, a struct filled by a program
  std::vector<OverrideOrigin> overrides = {};  // in the order given

  /// "run.json: key", or "--set model.width=3: key" where an override wrote it, or created it on
  /// the way to what it wrote.
  std::string at(const std::string& key) const { return at(key, key); }

  /// The same for a key that the value of `cause` makes a fault: an override that wrote either.
  std::string at(const std::string& key, const std::string& cause) const {
    for (const std::string& written : {key, cause}) {
      for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
        if (wrote(*it, written)) return "--set " + it->text + ": " + abbreviate(key);
      }
    }
    return (file.empty() ? "" : file + ": ") + abbreviate(key);
  }

 private:
  static bool wrote(const OverrideOrigin& o, const std::string& key) {
    const std::string list = key.substr(0, key.find('['));  // that "model.attention.prior[2]" is of
    const bool on_the_way = lies_in(o.path, key) && lies_in(key, o.created);
    return on_the_way || lies_in(key, o.path) || lies_in(list, o.path);
  }
};

}  // namespace bamtrain
