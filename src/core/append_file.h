#pragma once
// A file that a run only appends to.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// Opens the regular file at `path` for appending, creates it if missing, and returns its
/// descriptor. Throws Error (ExitCode::io) with `remedy`, also for a pipe; never waits for a pipe's
/// reader.
int open_to_append(const std::string& path, const char* remedy);

/// Every member may throw Error (ExitCode::io) naming the file, the system's reason and the remedy.
class AppendFile {
 public:
  /// Returns how many leading bytes of a file are complete; its end may be torn off.
  using WholeBytes = int64_t (*)(const std::string& path);

  /// Opens the file, creates it if missing, and truncates it to its first `keep` bytes. `whole`:
  /// see write; null if the file has no records.
  AppendFile(const std::string& path, int64_t keep, WholeBytes whole = nullptr);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  /// Makes one write(2) call if the system accepts all bytes at once. Allocates no memory. If the
  /// file was removed or replaced, creates it again, starting with these bytes. If it was
  /// truncated, keeps its `whole` bytes and appends after them. See take_lost.
  void write(std::string_view bytes);
  /// Whether the file was removed, replaced or truncated since the last call.
  bool take_lost();
  /// Returns once everything written is on the disk.
  void sync();

 private:
  void find_again();
  void cut_back(int64_t keep);

  std::string path_;
  WholeBytes whole_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;  // the file's minimum size, unless something has truncated it
  bool lost_ = false;
};

}  // namespace bamtrain
