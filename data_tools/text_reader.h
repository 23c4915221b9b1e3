#pragma once
// Bytes and lines of an input: a file or standard input, plain or compressed with zstd, xz or gzip.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace bamtrain {

/// The name of standard input on the command line.
inline constexpr std::string_view kStandardInput = "-";

/// A stream of bytes, decompressed. Errors name the input.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Up to `n` bytes into `out`; 0 at the end. Error (io) where reading fails, Error (data) where
  /// compressed data is damaged or ends early.
  virtual size_t read(char* out, size_t n) = 0;
  /// Bytes taken from the file so far, compressed as they are there.
  virtual int64_t taken() const = 0;
};

/// Opens `path`, or standard input for "-". Compression is recognised by the first bytes, which no
/// text in UTF-8 begins with; a name in .zst, .xz or .gz without them is an Error (data), and so is
/// what refuse_binary knows.
/// Error (io) where it cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// Size of the file in bytes as it lies on the disk; nothing for "-", pipes, what is not there.
std::optional<int64_t> file_bytes(const std::string& path);

/// Lines of a source, without their newline. A byte order mark before the first is dropped.
class TextReader {
 public:
  /// No line may be longer than `max_bytes`.
  TextReader(const std::string& path, int64_t max_bytes);

  /// The next line into `*line`, which holds until the next call; false at the end. Text after the
  /// last newline is a line too. Error (data) past max_bytes; and as ByteSource::read.
  bool next(std::string_view* line);
  /// All that is left, newlines included. REQUIRES: next() was not called. Errors: as next.
  std::string rest();

  const std::string& path() const { return path_; }
  int64_t line() const { return line_; }             // number of the line last returned, from 1
  int64_t offset() const { return offset_; }         // where it begins, in decompressed bytes
  bool had_newline() const { return had_newline_; }  // the line last returned ended in one
  int64_t taken() const { return source_->taken(); }

 private:
  bool fill();
  [[noreturn]] void too_long() const;

  std::string path_;
  int64_t max_bytes_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;         // of the line to come, in buffer_
  int64_t next_offset_ = 0;  // of buffer_[begin_] in the text
  int64_t line_ = 0, offset_ = 0;
  bool had_newline_ = false;
  bool started_ = false;
};

}  // namespace bamtrain
