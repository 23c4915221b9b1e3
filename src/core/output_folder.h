#pragma once
// A folder that appears under its name complete, or not at all.

#include <string>
#include <vector>

#include "core/folder_place.h"

namespace bamtrain {

/// Files are written into path(), a new folder beside `final_path`; commit() gives it that name.
/// The destructor removes what was not committed.
///
/// What a killed process leaves, wherever it was killed, the next OutputFolder of the same name
/// removes. A folder NAME.tmp-HHHHHHHH-XXXX is such a leftover where H are the digits of this
/// machine's name (temporary_prefix) and no process holds the lock (flock(2)) on it, which every
/// OutputFolder takes as soon as its folder is made and holds for life. Anything else beside NAME
/// stays, and so does everything on file systems without locks.
class OutputFolder {
 public:
  /// What the names of temporary folders for `final_path` begin with on this machine.
  static std::string temporary_prefix(const std::string& final_path);

  using MayReplace = FolderPlace::MayReplace;

  /// Errors: as FolderPlace. What is replaced is removed.
  OutputFolder(const std::string& final_path, MayReplace may_replace);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }
  /// The leftovers of killed processes that the constructor removed.
  const std::vector<std::string>& removed_leftovers() const { return removed_; }

  /// A new folder within, and its path. Error (io).
  std::string subfolder(const std::string& name) const;

  /// The folder takes its place, as FolderPlace::take. REQUIRES: called once.
  void commit();

 private:
  void make_temporary();
  void remove_leftovers();

  FolderPlace place_;
  std::string temporary_;
  int lock_ = -1;  // the open temporary folder
  bool committed_ = false;
  std::vector<std::string> removed_;
};

}  // namespace bamtrain
