#pragma once
// A folder that appears under its name complete, or not at all.

#include <string>
#include <vector>

namespace bamtrain {

/// Files are written into path(), a new folder NAME.tmp-XXXXXX beside `final_path`; commit() gives
/// it that name. The destructor removes what was not committed.
///
/// What a killed process leaves, the next OutputFolder of the same name removes. A folder
/// NAME.tmp-XXXXXX is such a leftover where it holds the mark, a file kMark with this machine's
/// name, which every OutputFolder puts into its folder, and no process holds the lock (flock(2)) on
/// the folder, which every OutputFolder takes before it puts the mark and holds for life. Anything
/// else of such a name stays, and so does everything on file systems without locks.
class OutputFolder {
 public:
  static constexpr const char* kMark = ".unfinished-bamdata";

  /// Error (io) where a folder with content (or a file) has the name already and `overwrite` is
  /// false, or its parent cannot be written. With `overwrite`, only a folder of token shards is
  /// replaced: Error (io) where it holds anything else.
  OutputFolder(const std::string& final_path, bool overwrite);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }
  /// The leftovers of killed processes that the constructor removed.
  const std::vector<std::string>& removed_leftovers() const { return removed_; }

  /// A new folder within, and its path. Error (io).
  std::string subfolder(const std::string& name) const;

  /// Puts names on disk and moves the folder to its place, instead of the former one. Error (io),
  /// also where without `overwrite` another process has filled the place meanwhile; what is there
  /// stays then. REQUIRES: called once.
  void commit();

 private:
  void check_place() const;
  void discard();
  void remove_leftovers();

  std::string final_;
  bool overwrite_;
  std::string temporary_;
  int lock_ = -1;  // the open temporary folder
  bool committed_ = false;
  std::vector<std::string> removed_;
};

}  // namespace bamtrain
