#pragma once
// A file of examples as a task: an infinite, numbered sequence of examples.

#include <memory>
#include <string>

#include "data/example_file.h"
#include "tasks/task.h"

namespace bamtrain {

class FileTask final : public Task {
 public:
  /// Set "train" draws every example once per epoch, in a new permutation each epoch. Other sets
  /// repeat the examples in file order. `tokenizer`: path of the tokenizer for text; empty if the
  /// file has ids. Errors: as ExampleFile::read and Tokenizer::open; Error (ExitCode::config) for a
  /// tokenizer with ids past `inputs`, and for examples longer than `sequence_length`.
  static std::unique_ptr<FileTask> open(const std::string& path, const std::string& tokenizer,
                                        int64_t inputs, int64_t classes, int64_t sequence_length,
                                        uint64_t seed, const std::string& set);

  /// Throws Error (ExitCode::config) if an example's targets are the next inputs: a bidirectional
  /// model would see them. `path`: the file's.
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
