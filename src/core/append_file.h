#pragma once
// A file that a run only ever appends to.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// Opens the regular file at `path`, made where it is absent, for appending; its descriptor. Error
/// (ExitCode::io) with `remedy`, for a pipe too, whose reader is not waited for.
int open_to_append(const std::string& path, const char* remedy);

/// Every member may throw Error (ExitCode::io) naming the file, the system's reason and the remedy.
class AppendFile {
 public:
  /// How many of the bytes that a file begins with are whole, where its end may have been torn off.
  using WholeBytes = int64_t (*)(const std::string& path);

  /// Opens the file, made where it is absent, and cuts it back to its first `keep` bytes. `whole`:
  /// see write; without it the file has no parts.
  AppendFile(const std::string& path, int64_t keep, WholeBytes whole = nullptr);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  /// One write(2) where the system takes all of it at once. Takes no memory. A file that was
  /// removed or replaced meanwhile is made anew and begins with these bytes; of one that was cut
  /// short or emptied what is `whole` stays, and they follow it: see take_lost.
  void write(std::string_view bytes);
  /// Whether that has happened since the last call.
  bool take_lost();
  /// Returns once everything written is on the disk.
  void sync();

 private:
  void find_again();
  void cut_back(int64_t keep);

  std::string path_;
  WholeBytes whole_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;  // what the file has at least, unless somebody has cut it
  bool lost_ = false;
};

}  // namespace bamtrain
