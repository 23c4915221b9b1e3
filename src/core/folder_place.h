#pragma once
// The name that a folder takes when it is complete, and what may have it before.

#include <functional>
#include <string>

namespace bamtrain {

class FolderPlace {
 public:
  /// Called with a folder that has the name already, and content: throws what an Error should say
  /// where that must not be replaced.
  using MayReplace = std::function<void(const std::string& folder)>;

  /// The place that `path` names: its own symbolic links are followed, slashes at its end left out.
  static std::string named(const std::string& path);

  /// For the place named(path); folders above are made. Error (io) where a file has
  /// the name already, its parent cannot be written, or `may_replace` throws one.
  FolderPlace(const std::string& path, MayReplace may_replace);

  const std::string& path() const { return path_; }

  /// Puts the names in `folder` on disk and moves it to the place, instead of the former one: in
  /// one step, or on file systems that cannot exchange two names (NFS is one) in two, between which
  /// the former one is NAME.former-XXXX and a process that is killed leaves it under that name.
  /// Returns where the former one is then, "" for none. Error (io), also where another process has
  /// filled the place meanwhile with what must not be replaced; it stays then.
  std::string take(const std::string& folder);

 private:
  void check() const;
  std::string replace_former(const std::string& folder);

  std::string path_;
  MayReplace may_replace_;
};

}  // namespace bamtrain
