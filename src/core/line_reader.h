#pragma once
// The lines of a file, one after the other.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/input_file.h"

namespace bamtrain {

/// What follows the last newline is no line: whoever writes it has not ended it. Holds no more than
/// a piece of the file and the longest line, of which it takes `most` bytes.
class LineReader {
 public:
  /// A longer line is damage: several times what a run writes (record/logs.h).
  static constexpr size_t kMost = size_t{64} << 20;

  /// From `offset` on. `file` must outlive the reader.
  explicit LineReader(const InputFile& file, int64_t offset = 0, size_t most = kMost)
      : file_(file), most_(most), read_(offset) {}

  /// The next line, without its newline; it is there until the next call. Of a line longer than
  /// `most` bytes, ended or not, its first most + 1; the call after that skips the rest. false:
  /// there is none. Errors: as InputFile::read.
  bool next(std::string_view* line);
  /// Where in the file the next line begins.
  int64_t offset() const { return read_ - static_cast<int64_t>(held_.size() - begin_); }

 private:
  const InputFile& file_;
  size_t most_;
  int64_t read_;           // of the file, up to here
  std::string held_;       // what was read last
  size_t begin_ = 0;       // of the next line in it
  bool skipping_ = false;  // what is read next is the rest of a line that was too long
};

}  // namespace bamtrain
