#include "data/file_task.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/error.h"
#include "core/permutation.h"
#include "tasks/file.h"

namespace bamtrain {

namespace {

/// Identifies the sequences independently of the file's path.
Options identity(const ExampleFile& file, const std::string& tokenizer_sha256) {
  Options options;
  options.set("sha256", file.sha256());
  options.set("tokenizer_sha256", tokenizer_sha256);
  return options;
}

}  // namespace

std::unique_ptr<FileTask> FileTask::open(const std::string& path, const std::string& tokenizer,
                                         int64_t inputs, int64_t classes, int64_t sequence_length,
                                         uint64_t seed, const std::string& set) {
  std::optional<Tokenizer> t;
  if (!tokenizer.empty()) t = Tokenizer::open(tokenizer);
  if (t && t->vocab() > inputs) {
    throw Error(ExitCode::config, "model.vocab",
                fmt::format("at least the {} ids of {}", t->vocab(), tokenizer),
                std::to_string(inputs), "raise it, or name another tokenizer");
  }
  ExampleFile file = ExampleFile::read(path, t ? &*t : nullptr, inputs, classes);
  if (file.longest() > sequence_length) {
    throw Error(ExitCode::config, "data.sequence_length",
                fmt::format("at least {}, the inputs of the longest example, {}:{}", file.longest(),
                            path, file.longest_line()),
                std::to_string(sequence_length), "raise it, or shorten the example");
  }
  return std::unique_ptr<FileTask>(new FileTask(std::move(file), t ? t->sha256() : "", seed, set));
}

FileTask::FileTask(ExampleFile file, const std::string& tokenizer_sha256, uint64_t seed,
                   const std::string& set)
    : Task(file_task(), identity(file, tokenizer_sha256), {1, file.longest()}, seed, set),
      file_(std::move(file)),
      seed_(seed),
      permuted_(set == "train") {}

void FileTask::require_own_places(const std::string& path) const {
  const int64_t line = file_.continued_line();
  if (line == 0) return;
  throw Error(ExitCode::config, "model.attention.causal",
              "true with {\"prompt\", \"target\"} as in " + fmt::format("{}:{}", path, line) +
                  ", whose next tokens a position would see",
              "false", "set it to true, or give {\"input\", \"targets\"}");
}

int64_t FileTask::place(int64_t n) const {
  const int64_t epoch = n / file_.size(), of_epoch = n % file_.size();
  return permuted_ ? Permutation(file_.size(), seed_, epoch)(of_epoch) : of_epoch;
}

void FileTask::draw(int64_t index, int64_t, Example* out) const { file_.get(place(index), out); }

}  // namespace bamtrain
