#pragma once
// A folder that appears under its name complete, or not at all.

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bamtrain {

/// Files are written into path(), a new folder NAME.tmp-XXXXXX beside `final_path`; commit() gives
/// it that name. The destructor removes what was not committed.
///
/// What a killed process leaves, the next OutputFolder of the same name removes, wherever it was
/// killed. A mark tells: a file .NAME.tmp-XXXXXX with this machine's name, which is there before
/// the folder, and until after it has its final name. The folder of a mark is a leftover where no
/// process holds the lock (flock(2)) on it, which every OutputFolder holds for life. A former
/// folder that is being replaced has a mark that says so, and gets its name back where the new one
/// did not arrive. Anything else of such a name stays, and so does everything on file systems
/// without locks.
class OutputFolder {
 public:
  /// Called with a folder that has the name already, and content: throws what an Error should say
  /// where that must not be replaced.
  using MayReplace = std::function<void(const std::string& folder)>;

  /// Makes the folders above `final_path` that are missing, durably. Error (io) where a file has
  /// the name already, its parent cannot be written, or `may_replace` throws one. What is replaced
  /// is removed.
  OutputFolder(const std::string& final_path, MayReplace may_replace);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const;
  /// The leftovers of killed processes that the constructor removed.
  const std::vector<std::string>& removed_leftovers() const { return removed_; }

  /// A new folder within, and its path. Error (io).
  std::string subfolder(const std::string& name) const;

  /// Puts names on disk and moves the folder to its place, instead of the former one. Error (io),
  /// also where another process has filled the place meanwhile with what must not be replaced; it
  /// stays then. REQUIRES: called once.
  void commit();

 private:
  class Marked;

  void check_place() const;
  void remove_leftovers();
  void remove_leftover(const std::string& mark);

  std::string final_;
  MayReplace may_replace_;
  std::unique_ptr<Marked> temporary_;
  std::vector<std::string> removed_;
};

}  // namespace bamtrain
