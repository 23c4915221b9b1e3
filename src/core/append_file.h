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

  /// One write(2) where the system takes all of it at once. Takes no memory. A file that was
  /// removed or replaced meanwhile is made anew and begins with these bytes: see take_lost.
  void write(std::string_view bytes);
  /// Whether that has happened since the last call.
  bool take_lost();
  /// Returns once everything written is on the disk.
  void sync();

 private:
  bool is_in_its_place() const;

  std::string path_;
  int descriptor_ = -1;
  bool lost_ = false;
};

}  // namespace bamtrain
