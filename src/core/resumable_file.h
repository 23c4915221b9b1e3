#pragma once
// An append-only file that a later process can continue.

#include <cstdint>
#include <string>

namespace bamtrain {

/// What is to be counted on after a crash is what `sync` has returned for, and a record elsewhere
/// of how many bytes that were: the next process keeps so many. Destruction leaves the file as it
/// is. Every member may throw Error (ExitCode::io) naming the file, the system's reason and the
/// remedy.
class ResumableFile {
 public:
  /// Opens the file, made where it is absent, and cuts it back to its first `keep` bytes. Error
  /// (ExitCode::data) where it has fewer.
  ResumableFile(const std::string& path, int64_t keep);
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;
  ~ResumableFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  void append(const void* data, int64_t bytes);
  /// Replaces bytes at the start. REQUIRES: so many are there.
  void rewrite_start(const void* data, int64_t bytes);
  /// Exactly `bytes` bytes from `offset`. REQUIRES: so many are there.
  void read(int64_t offset, void* out, int64_t bytes) const;
  /// SHA-256 of the whole file, read back: 64 lower-case digits.
  std::string sha256() const;
  /// Puts everything on the disk; the folder's entry for a new file only sync_folder does.
  void sync();

 private:
  [[noreturn]] void fail(const std::string& expected, int error) const;
  void write_at(int64_t offset, const void* data, int64_t bytes);

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace bamtrain
