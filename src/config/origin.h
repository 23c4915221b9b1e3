#pragma once
// Where a key's value was written, for error messages.

#include <map>
#include <string>
#include <vector>

#include "core/abbreviate.h"

namespace bamtrain {

/// Whether `path` is `tree` or lies below it: "model.norm.eps" below "model.norm".
inline bool lies_in(const std::string& path, const std::string& tree) {
  return path.compare(0, tree.size(), tree) == 0 &&
         (path.size() == tree.size() || path[tree.size()] == '.');
}

/// One --set argument.
struct OverrideOrigin {
  std::string path;  // "a.b.c"
  std::string text;  // as given, abbreviated
  /// The first part of the path that did not exist before: "a.b"; the whole path if all existed.
  std::string created;
};

struct Origin {
  std::string file;                            // empty: filled by a program, without a file
  std::vector<OverrideOrigin> overrides = {};  // in the order given
  /// Of keys that another file wrote, a base of this one: that file (config/document.h).
  std::map<std::string, std::string> files = {};

  /// "run.json: key", or "--set model.width=3: key" if an override wrote the key or created it as a
  /// parent of what it wrote.
  std::string at(const std::string& key) const { return at(key, key); }

  /// The same for a key that is invalid because of the value of `cause`: an override of either.
  std::string at(const std::string& key, const std::string& cause) const {
    for (const std::string& written : {key, cause}) {
      for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
        if (!wrote(*it, written)) continue;
        return "--set " + it->text + (it->path == key ? "" : ": " + abbreviate(key));
      }
    }
    const std::string of = file_of(key);
    return (of.empty() ? "" : of + ": ") + abbreviate(key);
  }

 private:
  /// The file that wrote the key, or an object or list around it.
  const std::string& file_of(const std::string& key) const {
    for (size_t end = key.size(); end != std::string::npos && end > 0;
         end = key.find_last_of(".[", end - 1)) {
      const auto found = files.find(key.substr(0, end));
      if (found != files.end()) return found->second;
    }
    return file;
  }

  static bool wrote(const OverrideOrigin& o, const std::string& key) {
    const std::string list = key.substr(0, key.find('['));  // "model.attention.prior" of "...[2]"
    const bool on_the_way = lies_in(o.path, key) && lies_in(key, o.created);
    return on_the_way || lies_in(key, o.path) || lies_in(list, o.path);
  }
};

}  // namespace bamtrain
