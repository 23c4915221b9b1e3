#pragma once
// A folder that appears under its name complete, or not at all.

#include <string>
#include <vector>

#include "core/folder_place.h"

namespace bamtrain {

/// Files are written into path(), a new folder next to `final_path`; commit() gives it that name.
/// The destructor removes an uncommitted folder.
///
/// The next OutputFolder of the same name removes whatever a killed process left. A folder
/// NAME.tmp-HHHHHHHH-XXXX is such a leftover if HHHHHHHH are the digits of this machine's name
/// (temporary_prefix) and no process holds its lock (flock(2)). Every OutputFolder takes that lock
/// as soon as its folder exists and holds it for life. Everything else next to NAME stays, and so
/// does everything on file systems without locks.
class OutputFolder {
 public:
  /// The prefix of names of temporary folders for `final_path` on this machine.
  static std::string temporary_prefix(const std::string& final_path);

  using MayReplace = FolderPlace::MayReplace;

  /// Errors as FolderPlace. A replaced folder is removed.
  OutputFolder(const std::string& final_path, MayReplace may_replace);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }
  /// The leftovers of killed processes that the constructor removed.
  const std::vector<std::string>& removed_leftovers() const { return removed_; }

  /// Creates a folder within and returns its path. Throws Error (io).
  std::string subfolder(const std::string& name) const;

  /// Moves the folder to its place, as FolderPlace::take. REQUIRES: called once.
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
