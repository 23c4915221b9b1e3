#pragma once
// The name that a folder takes when it is complete, and whatever has that name before.

#include <functional>
#include <string>

namespace bamtrain {

class FolderPlace {
 public:
  /// Called with an existing, non-empty folder of that name. Throws an Error if it must not be
  /// replaced.
  using MayReplace = std::function<void(const std::string& folder)>;

  /// The place that `path` names: follows its final symbolic links and strips trailing slashes.
  static std::string named(const std::string& path);

  /// For the place named(path); creates its parents. Throws Error (io) if a file has the name, the
  /// parent is not writable, or `may_replace` throws one.
  FolderPlace(const std::string& path, MayReplace may_replace);

  const std::string& path() const { return path_; }

  /// Syncs the entries of `folder` to disk and moves it to the place, instead of the former folder.
  /// That takes one step, or two on file systems that cannot exchange two names (such as NFS).
  /// Between the two steps the former folder is NAME.former-XXXX; a killed process leaves it there.
  /// Returns the former folder's new path, or "" if there was no former folder. Throws Error (io),
  /// also if another process has meanwhile put something at the place that must not be replaced;
  /// that content stays.
  std::string take(const std::string& folder);

 private:
  void check() const;
  std::string replace_former(const std::string& folder);

  std::string path_;
  MayReplace may_replace_;
};

}  // namespace bamtrain
