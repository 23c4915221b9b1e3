#pragma once
// A file of examples as a task: the sequences of a run, numbered without end.

#include <memory>
#include <string>

#include "data/example_file.h"
#include "tasks/task.h"

namespace bamtrain {

class FileTask final : public Task {
 public:
  /// Set "train" has every example once an epoch, permuted anew for each; others are in the file's
  /// order, over and over. `tokenizer`: file of that of its texts; empty: it has ids. Errors as
  /// ExampleFile::read and Tokenizer::open; (ExitCode::config) for a tokenizer with ids past
  /// `inputs`, and for examples longer than `sequence_length`.
  static std::unique_ptr<FileTask> open(const std::string& path, const std::string& tokenizer,
                                        int64_t inputs, int64_t classes, int64_t sequence_length,
                                        uint64_t seed, const std::string& set);

  /// Error (ExitCode::config) where an example's targets are the next inputs, which the positions
  /// of a bidirectional model see. `path`: the file's.
  void require_own_places(const std::string& path) const;

  int64_t count() const override { return file_.size(); }
  int64_t length(int64_t n) const override { return file_.length(place(n)); }
  void draw(int64_t index, int64_t length, Example* out) const override;

 private:
  FileTask(ExampleFile file, const std::string& tokenizer_sha256, uint64_t seed,
           const std::string& set);
  int64_t place(int64_t n) const;

  ExampleFile file_;
  uint64_t seed_;
  bool permuted_;
};

}  // namespace bamtrain
