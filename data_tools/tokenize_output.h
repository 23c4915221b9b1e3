#pragma once
// Output of `bamdata tokenize` from encoded documents, and its progress on disk.

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/tokenizer.h"
#include "data_tools/document_shuffle.h"
#include "data_tools/partial_folder.h"
#include "data_tools/shard_set_writer.h"
#include "data_tools/tokenize.h"
#include "data_tools/tokenize_journal.h"
#include "data_tools/validation_split.h"

namespace bamtrain {

/// Splits and shuffles documents and writes them to the shards of a PartialFolder.
class TokenizeOutput {
 public:
  /// Resumes after a process with the same settings, and reports it to `log`. If not `resumable`,
  /// nothing is kept. Errors: as PartialFolder, read_journal, require_same_settings.
  TokenizeOutput(const TokenizeOptions& options, const Tokenizer& tokenizer,
                 nlohmann::ordered_json settings, bool resumable, std::FILE* log);

  /// Removes what no process can resume: the rest of a process that was killed after its output was
  /// moved to `output`, or before it kept anything. Errors: as PartialFolder::is_one, FolderLock
  /// and read_journal.
  static void remove_leftover(const std::string& output);

  /// Progress at the start.
  const TokenizeJournal& begun() const { return journal_; }
  /// Whether it has all documents, so that no input must be read.
  bool read() const { return journal_.placed.has_value(); }

  void add(std::span<const int32_t> document, uint64_t draw) { split_->add(document, draw); }

  int64_t documents() const { return split_->documents(); }
  int64_t tokens() const { return split_->tokens(); }

  /// Makes a checkpoint on disk if one is due, with the inputs' progress `reached` and everything
  /// else that another process needs.
  void checkpoint(const TokenizeJournal& reached);

  /// Writes the remaining documents and moves the folder to its final place.
  TokenizeReport finish(const TokenizeJournal& reached);

  /// Whether another process can resume where this one ends.
  bool kept() const { return folder_.kept(); }

 private:
  using Clock = std::chrono::steady_clock;

  void go_on_from_journal();
  void open(const Tokenizer& tokenizer);
  bool is_due() const { return resumable_ && Clock::now() >= due_; }
  void take(const TokenizeJournal& reached);
  void write_checkpoint();
  void place_shuffled();
  void write_part() const;

  TokenizeOptions options_;
  bool resumable_;
  std::FILE* log_;
  PartialFolder folder_;
  std::string journal_path_;
  TokenizeJournal journal_;
  std::optional<ShardSetWriter> train_, val_;
  std::optional<DocumentShuffle> shuffle_;
  std::optional<ValidationSplit> split_;
  Clock::time_point due_;
};

}  // namespace bamtrain
