#pragma once
// A user-defined task: inputs and targets, one JSON object per line.
//
//   {"prompt": "2 + 2 =", "target": " 4"}            text, encoded by a tokenizer
//   {"prompt": [5, 9, 2], "target": [7, 7]}          the same in ids
//   {"input": [5, 9, 2], "targets": [-1, -1, 7]}     one target per position; -1 or null: no target
//                                                    (bamdata synth writes these, with a "length")
//
// The model continues the prompt with the target; only target tokens count in the loss. Text is
// encoded as prompt and target together, so the target begins where those ids differ from the ids
// of the prompt alone. BOS is put before the prompt if the tokenizer has one. EOS is put after the
// target, or BOS if there is no EOS.

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/example.h"

namespace bamtrain {

class ExampleFile {
 public:
  /// Reads the whole file. `tokenizer` may be null if the file has ids only. Throws Error
  /// (ExitCode::data) with file and line for: any other object, ids outside [0, inputs), targets
  /// outside [0, classes), text without a tokenizer, or an example without targets; also for a file
  /// without examples. Throws Error (ExitCode::io) if the file cannot be read.
  static ExampleFile read(const std::string& path, const Tokenizer* tokenizer, int64_t inputs,
                          int64_t classes);

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Number of inputs of example n. REQUIRES: 0 <= n < size().
  int64_t length(int64_t n) const { return end(n) - begin(n); }
  int64_t longest() const { return longest_; }
  /// Line of the first example of that length, from 1.
  int64_t longest_line() const { return longest_line_; }
  /// The first line with {"prompt", "target"}, whose targets are the next inputs; 0: no such line.
  int64_t continued_line() const { return continued_line_; }
  /// Overwrites `out`.
  void get(int64_t n, Example* out) const;
  /// SHA-256 of the file, 64 hex digits.
  const std::string& sha256() const { return sha256_; }
  int64_t bytes() const;  // memory used

 private:
  int64_t begin(int64_t n) const { return n == 0 ? 0 : ends_[static_cast<size_t>(n - 1)]; }
  int64_t end(int64_t n) const { return ends_[static_cast<size_t>(n)]; }

  Symbols inputs_, targets_;   // all examples, concatenated
  std::vector<int64_t> ends_;  // end of each example
  int64_t longest_ = 0, longest_line_ = 0, continued_line_ = 0;
  std::string sha256_;
};

}  // namespace bamtrain
