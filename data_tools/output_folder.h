#pragma once
// A folder that appears under its name complete, or not at all.

#include <string>

namespace bamtrain {

/// Files are written into path(), a new folder beside `final_path`; commit() gives it that name.
/// The destructor removes what was not committed.
class OutputFolder {
 public:
  /// Error (io) where a folder with content (or a file) has the name already and `overwrite` is
  /// false, or its parent cannot be written. With `overwrite`, only a folder of token shards is
  /// replaced: Error (io) where it holds anything else.
  OutputFolder(const std::string& final_path, bool overwrite);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }

  /// A new folder within, and its path. Error (io).
  std::string subfolder(const std::string& name) const;

  /// Puts names on disk and moves the folder to its place, instead of the former one. Error (io);
  /// the former one stays then. REQUIRES: called once.
  void commit();

 private:
  std::string final_;
  std::string temporary_;
  bool committed_ = false;
};

}  // namespace bamtrain
