#pragma once
// A folder that only appears under its name when complete; another process can resume its making.

#include <memory>
#include <string>

#include "core/folder_lock.h"
#include "core/folder_place.h"

namespace bamtrain {

/// Work on NAME happens in NAME.partial, which one process at a time can use. The complete folder
/// is made as output(). Next to it are the journal (TokenizeJournal), which records progress, and
/// documents to be placed later.
class PartialFolder {
 public:
  static constexpr const char* kOutput = "output";
  /// The file of documents held for validation (ValidationSplit).
  static constexpr const char* kHeld = "held";
  /// The folder of documents that wait for their order (DocumentShuffle).
  static constexpr const char* kShuffle = "shuffle";

  /// The folder for work on `final_path`; symbolic links are resolved.
  static std::string place_of(const std::string& final_path);
  /// Whether `path` is such a folder; false if nothing is there. Throws Error (io) for anything
  /// that this class did not make, of which nothing may be removed. That is a symbolic link, a
  /// file, a folder with content but neither journal nor lock, and one with any entry that `bamdata
  /// tokenize` does not make. (Other folders, such as runs, also have such a lock.) Other errors:
  /// as read_journal.
  static bool is_one(const std::string& path);
  /// Removes such a folder, the lock last: until then other processes find it held.
  static void remove(const std::string& path);

  /// Locks NAME.partial, and creates it if missing. Errors: as FolderPlace and is_one, before
  /// anything is changed; Error (io) if another process is using it.
  PartialFolder(const std::string& final_path, FolderPlace::MayReplace may_replace);
  /// Removes the folder and its content unless `keep` was called.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string output() const { return path_ + "/" + kOutput; }

  /// Removes the content, including what was kept.
  void clear();
  /// From now on the content stays when the process ends.
  void keep() { kept_ = true; }
  bool kept() const { return kept_; }

  /// Moves output() to its final place (FolderPlace::take) and removes everything else. REQUIRES:
  /// called once, and nothing after it.
  void commit();

 private:
  void remove();

  FolderPlace place_;
  std::string path_;
  std::unique_ptr<FolderLock> lock_;
  bool kept_ = false;
};

}  // namespace bamtrain
