#pragma once
// A folder that appears under its name complete, and on whose making another process goes on where
// one ended.

#include <memory>
#include <string>

#include "core/folder_lock.h"
#include "core/folder_place.h"

namespace bamtrain {

/// Work on NAME takes place in NAME.partial, in which one process at a time can be: the complete
/// folder is made as output(), beside it lies what tells how far it is.
class PartialFolder {
 public:
  /// The file in which its user says how far the work is.
  static constexpr const char* kJournal = "progress.json";

  /// Where work on `final_path` takes place; its symbolic links are followed.
  static std::string place_of(const std::string& final_path);
  /// Whether `path` is such a folder; false where nothing is there. Error (io) for what this class
  /// did not make, of which nothing may be removed: a symbolic link, a file, and a folder with
  /// content but neither the lock, which comes first and goes last, nor the journal.
  static bool is_one(const std::string& path);
  /// Removes such a folder, the lock last: whoever comes before finds it held.
  static void remove(const std::string& path);

  /// Goes into NAME.partial, which is made where it is absent. Errors: as FolderPlace and is_one,
  /// before anything is touched; (io) where another process is in it.
  PartialFolder(const std::string& final_path, FolderPlace::MayReplace may_replace);
  /// Removes what is in it, and it, unless `keep` was called.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string output() const { return path_ + "/output"; }

  /// Removes what is in it, and with it what was to be kept.
  void clear();
  /// From now on what is in it stays when the process ends.
  void keep() { kept_ = true; }
  bool kept() const { return kept_; }

  /// output() takes its place, as FolderPlace::take, and all else is removed. REQUIRES: called
  /// once, and nothing after it.
  void commit();

 private:
  void remove();

  FolderPlace place_;
  std::string path_;
  std::unique_ptr<FolderLock> lock_;
  bool kept_ = false;
};

}  // namespace bamtrain
