#pragma once
// Reading files of a checkpoint: nothing is allocated or believed beyond the bytes that are there.

#include <cstdint>
#include <string>

namespace bamtrain {

/// The remedy for a file of a checkpoint that is missing, damaged or not ours.
inline constexpr const char* kDamagedRemedy =
    "use another checkpoint, or restore this one from a copy";

/// A regular file open for reading. Every failure is an Error (ExitCode::checkpoint) naming it.
///
/// Reads are copies rather than views of a mapping: a mapped page that the disk cannot deliver, or
/// that another process has cut off, would end the process without a word.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
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
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace bamtrain
