#pragma once
// Bytes and lines of an input: a file or standard input, plain or compressed with zstd, xz or gzip.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace bamtrain {

/// Name of standard input on the command line.
inline constexpr std::string_view kStandardInput = "-";

/// A decompressed byte stream. Errors name the input.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Reads up to `n` bytes into `out`; returns 0 at the end. Throws Error (io) if reading fails,
  /// Error (data) if compressed data is damaged or truncated.
  virtual size_t read(char* out, size_t n) = 0;
  /// Bytes read from the file so far, compressed.
  virtual int64_t taken() const = 0;
};

/// Opens `path`, or standard input for "-". Compression is recognized by the first bytes, with
/// which no UTF-8 text begins. Throws Error (data) for a name in .zst, .xz or .gz without them, and
/// for what refuse_binary knows. Throws Error (io) if it cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// Size of the file on disk in bytes; nullopt for "-", pipes and missing files.
std::optional<int64_t> file_bytes(const std::string& path);

/// Iterates over the lines of a source, without newlines. Drops a byte order mark before the first.
class TextReader {
 public:
  /// `max_bytes`: limit of a line's length.
  TextReader(const std::string& path, int64_t max_bytes);

  /// Reads the next line into `*line`, valid until the next call; returns false at the end. Text
  /// after the last newline is a line too. Throws Error (data) past max_bytes; other errors as
  /// ByteSource::read.
  bool next(std::string_view* line);
  /// Returns all remaining text, newlines included. REQUIRES: next() was not called. Errors: as
  /// next.
  std::string rest();

  const std::string& path() const { return path_; }
  int64_t line() const { return line_; }             // number of the last returned line, from 1
  int64_t offset() const { return offset_; }         // its start, in decompressed bytes
  bool had_newline() const { return had_newline_; }  // the last returned line had a newline
  int64_t taken() const { return source_->taken(); }

 private:
  bool fill();
  [[noreturn]] void too_long() const;

  std::string path_;
  int64_t max_bytes_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;         // start of the next line in buffer_
  int64_t next_offset_ = 0;  // offset of buffer_[begin_] in the text
  int64_t line_ = 0, offset_ = 0;
  bool had_newline_ = false;
  bool started_ = false;
};

}  // namespace bamtrain
