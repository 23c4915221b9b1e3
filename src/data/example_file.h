#pragma once
// A user's own task: sequences with what should be answered, one JSON object a line.
//
//   {"prompt": "2 + 2 =", "target": " 4"}            text, by a tokenizer
//   {"prompt": [5, 9, 2], "target": [7, 7]}          the same in ids
//   {"input": [5, 9, 2], "targets": [-1, -1, 7]}     a target for each place; -1 or null: none; as
//                                                    bamdata synth writes them, with a "length"
//
// A prompt is continued by its target: the loss is on that alone. Of text both stand as the ids of
// prompt and target together, behind the tokenizer's BOS where it has one and before its EOS (its
// BOS where it has none); the target begins where they leave the ids of the prompt by itself.

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/example.h"

namespace bamtrain {

class ExampleFile {
 public:
  /// Reads the whole file. `tokenizer`: null where it has ids alone. Error (ExitCode::data) naming
  /// file and line for what is no such object, ids outside [0, inputs) or targets outside
  /// [0, classes), text without a tokenizer, an example without targets, and a file without
  /// examples; (ExitCode::io) where it cannot be read.
  static ExampleFile read(const std::string& path, const Tokenizer* tokenizer, int64_t inputs,
                          int64_t classes);

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Inputs of example n. REQUIRES: 0 <= n < size().
  int64_t length(int64_t n) const { return end(n) - begin(n); }
  int64_t longest() const { return longest_; }
  /// Where the first of that length stands, from 1.
  int64_t longest_line() const { return longest_line_; }
  /// The first line of {"prompt", "target"}, whose targets are the next inputs; 0: there is none.
  int64_t continued_line() const { return continued_line_; }
  /// Replaces `out`.
  void get(int64_t n, Example* out) const;
  /// Of the file's bytes, 64 hexadecimal digits.
  const std::string& sha256() const { return sha256_; }
  int64_t bytes() const;  // of memory

 private:
  int64_t begin(int64_t n) const { return n == 0 ? 0 : ends_[static_cast<size_t>(n - 1)]; }
  int64_t end(int64_t n) const { return ends_[static_cast<size_t>(n)]; }

  Symbols inputs_, targets_;   // of all examples, one after the other
  std::vector<int64_t> ends_;  // of each
  int64_t longest_ = 0, longest_line_ = 0, continued_line_ = 0;
  std::string sha256_;
};

}  // namespace bamtrain
