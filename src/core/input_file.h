#pragma once
// Reading regular files: nothing is allocated or believed beyond the bytes that are there.

#include <cstdint>
#include <string>

#include "core/error.h"

namespace bamtrain {

/// A regular file open for reading. Every failure is an Error of the given code and remedy that
/// names the file; with `passing`, what says nothing of the file (EIO, EMFILE, EACCES and the like,
/// where another try may succeed) is one of ExitCode::io.
///
/// Reads are copies rather than views of a mapping: a mapped page that the disk cannot deliver, or
/// that another process has cut off, would end the process without a word.
class InputFile {
 public:
  enum class Refusals { of_the_file, passing };
  InputFile(const std::string& path, ExitCode code, const std::string& remedy,
            Refusals refusals = Refusals::of_the_file);
  /// The regular file that is open as `descriptor`, which is its own from now on.
  InputFile(int descriptor, const std::string& path, ExitCode code, const std::string& remedy);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  /// Exactly `bytes` bytes from `offset` into `out`; fewer there: Error.
  void read(int64_t offset, void* out, int64_t bytes) const;
  /// The whole file. More than `limit` bytes: Error, before anything is allocated.
  std::string text(int64_t limit) const;
  /// SHA-256 of the whole file, 64 lower-case digits.
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
