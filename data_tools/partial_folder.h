#pragma once
// A folder that appears under its name complete, and on whose making another process goes on where
// one ended.

#include <memory>
#include <string>

#include "core/folder_lock.h"
#include "core/folder_place.h"

namespace bamtrain {

/// Work on NAME takes place in NAME.partial, in which one process at a time can be: the complete
/// folder is made as output(), beside it lie the journal (TokenizeJournal), which says how far it
/// is, and documents that wait.
class PartialFolder {
 public:
  static constexpr const char* kOutput = "output";
  /// The file of documents held for validation (ValidationSplit).
  static constexpr const char* kHeld = "held";
  /// The folder of documents that wait for their order (DocumentShuffle).
  static constexpr const char* kShuffle = "shuffle";

  /// Where work on `final_path` takes place; its symbolic links are followed.
  static std::string place_of(const std::string& final_path);
  /// Whether `path` is such a folder; false where nothing is there. Error (io) for what this class
  /// did not make, of which nothing may be removed: a symbolic link, a file, a folder with content
  /// that has neither journal nor lock, and one with anything that `bamdata tokenize` does not make.
  /// Other folders have such a lock, those of runs among them. Errors: also as read_journal.
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
  std::string output() const { return path_ + "/" + kOutput; }

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
