#pragma once
// An append-only file that a later process can continue.

#include <cstdint>
#include <string>

namespace bamtrain {

/// After a crash, only bytes for which `sync` has returned are safe. A record elsewhere must say
/// how many they are; the next process keeps that many. The destructor leaves the file unchanged.
/// Every member may throw Error (ExitCode::io) with the file, the system's reason and the remedy.
class ResumableFile {
 public:
  /// Opens the file, creates it if missing, and truncates it to its first `keep` bytes. Throws
  /// Error (ExitCode::data) if it has fewer.
  ResumableFile(const std::string& path, int64_t keep);
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;
  ~ResumableFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  void append(const void* data, int64_t bytes);
  /// Replaces bytes at the start. REQUIRES: the file has at least `bytes` bytes.
  void rewrite_start(const void* data, int64_t bytes);
  /// Reads exactly `bytes` bytes from `offset`. REQUIRES: the file has them.
  void read(int64_t offset, void* out, int64_t bytes) const;
  /// SHA-256 of the whole file, read back: 64 lower-case hex digits.
  std::string sha256() const;
  /// Syncs everything to disk, except the folder's entry of a new file, which needs sync_folder.
  void sync();

 private:
  [[noreturn]] void fail(const std::string& action, int error) const;
  void write_at(int64_t offset, const void* data, int64_t bytes);

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace bamtrain
