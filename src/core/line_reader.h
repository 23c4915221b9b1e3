#pragma once
// Reads the lines of a file in order.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/input_file.h"

namespace bamtrain {

/// Text after the last newline is not a line: its writer has not finished it. Holds at most one
/// read buffer of the file and the longest line, of which it keeps `most` bytes.
class LineReader {
 public:
  /// A longer line is damage: this is several times what a run writes (record/logs.h).
  static constexpr size_t kMost = size_t{64} << 20;

  /// Reads from `offset` on. `file` must outlive the reader.
  explicit LineReader(const InputFile& file, int64_t offset = 0, size_t most = kMost)
      : file_(file), most_(most), read_(offset) {}

  /// Returns the next line without its newline, valid until the next call. For a line longer than
  /// `most` bytes, terminated or not, returns its first most + 1 bytes; the next call skips the
  /// rest. Returns false if no line is left. Errors as InputFile::read.
  bool next(std::string_view* line);
  /// The file offset of the next line.
  int64_t offset() const { return read_ - static_cast<int64_t>(held_.size() - begin_); }

 private:
  const InputFile& file_;
  size_t most_;
  int64_t read_;           // file offset up to which bytes were read
  std::string held_;       // bytes read but not yet returned
  size_t begin_ = 0;       // offset of the next line in held_
  bool skipping_ = false;  // the next bytes are the rest of a line that was too long
};

}  // namespace bamtrain
