#pragma once
// A file that a run only ever appends to.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// Every member may throw Error (ExitCode::io) naming the file, the system's reason and the remedy.
class AppendFile {
 public:
  /// Opens the file, made where it is absent, and cuts it back to its first `keep` bytes.
  AppendFile(const std::string& path, int64_t keep);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  /// One write(2) where the system takes all of it at once. Takes no memory.
  void write(std::string_view bytes);
  /// Returns once everything written is on the disk.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace bamtrain
