#pragma once
// Reads regular files. Nothing is allocated or trusted beyond the bytes that exist.

#include <cstdint>
#include <functional>
#include <string>

#include "core/error.h"

namespace bamtrain {

/// A regular file open for reading. Every failure throws an Error with the given code and remedy
/// that names the file. With `passing`, failures that say nothing about the file itself (EIO,
/// EMFILE, EACCES and the like, where a retry may succeed) have ExitCode::io instead.
///
/// Reads copy rather than use a mapped view. A mapped page that the disk cannot deliver, or that
/// another process has truncated, would kill the process without a message.
class InputFile {
 public:
  enum class Refusals { of_the_file, passing };
  InputFile(const std::string& path, ExitCode code, const std::string& remedy,
            Refusals refusals = Refusals::of_the_file);
  /// Takes ownership of `descriptor`, which is open on a regular file.
  InputFile(int descriptor, const std::string& path, ExitCode code, const std::string& remedy);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  /// Reads exactly `bytes` bytes from `offset` into `out`. Throws Error if there are fewer.
  void read(int64_t offset, void* out, int64_t bytes) const;
  /// The whole file. Throws Error before allocating if it has more than `limit` bytes.
  std::string text(int64_t limit) const;
  /// Calls f(offset, data, bytes) for pieces of the whole file, in order: a multiple of 4 bytes,
  /// but for the last.
  void for_pieces(const std::function<void(int64_t, const char*, int64_t)>& f) const;
  /// SHA-256 of the whole file, 64 lower-case hex digits.
  std::string sha256() const;

 private:
  void take_size();
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;
  [[noreturn]] void refuse(const std::string& expected, int error) const;

  std::string path_;
  ExitCode code_;
  std::string remedy_;
  Refusals refusals_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace bamtrain
