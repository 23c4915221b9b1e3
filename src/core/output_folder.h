#pragma once
// A folder that appears under its name complete, or not at all.

#include <functional>
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
  static constexpr const char* kMark = ".unfinished-bamtrain";

  /// Called with a folder that has the name already, and content: throws what an Error should say
  /// where that must not be replaced.
  using MayReplace = std::function<void(const std::string& folder)>;

  /// Error (io) where a file has the name already, its parent cannot be written, or `may_replace`
  /// throws one. What is replaced is removed.
  OutputFolder(const std::string& final_path, MayReplace may_replace);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }
  /// The leftovers of killed processes that the constructor removed.
  const std::vector<std::string>& removed_leftovers() const { return removed_; }

  /// A new folder within, and its path. Error (io).
  std::string subfolder(const std::string& name) const;

  /// Puts names on disk and moves the folder to its place, instead of the former one. Error (io),
  /// also where another process has filled the place meanwhile with what must not be replaced; it
  /// stays then. REQUIRES: called once.
  void commit();

 private:
  void check_place() const;
  void discard();
  void remove_leftovers();

  std::string final_;
  MayReplace may_replace_;
  std::string temporary_;
  int lock_ = -1;  // the open temporary folder
  bool committed_ = false;
  std::vector<std::string> removed_;
};

}  // namespace bamtrain
