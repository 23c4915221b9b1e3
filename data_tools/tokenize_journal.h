#pragma once
// Progress of `bamdata tokenize`: what another process needs to resume it.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data_tools/document_shuffle.h"
#include "data_tools/document_text.h"
#include "data_tools/inputs.h"
#include "data_tools/shard_set_writer.h"
#include "data_tools/validation_split.h"

namespace bamtrain {

struct TokenizeJournal {
  static constexpr const char* kName = "progress.json";
  static constexpr int64_t kFormat = 1;

  /// Everything that the output's bytes depend on, under the command line's names: a process with
  /// other settings does not resume.
  nlohmann::ordered_json settings;

  Inputs::Position position;  // input position up to which everything below is done
  int64_t text_bytes = 0;
  TextCounts counts;
  double seconds = 0;  // of all processes together
  std::vector<std::string> warnings;
  ShardSetWriter::State train, val;
  ValidationSplit::State split;
  std::optional<DocumentShuffle::State> shuffle;
  /// Number of the shuffle's buckets already written to shards; 0 without shuffle. Once set, all
  /// inputs have been read and the validation set is complete.
  std::optional<int64_t> placed;
  /// SHA-256 of the training set's manifest, once only the move of the output remains; "" before.
  std::string finished;
};

/// Throws Error (ExitCode::io) with file and field for anything that write_journal does not write,
/// and if the file cannot be read.
TokenizeJournal read_journal(const std::string& path);

/// Writes atomically: the file holds the former journal or this one. Throws Error (ExitCode::io).
void write_journal(const std::string& path, const TokenizeJournal& journal);

/// Throws Error (ExitCode::usage) with the first setting that differs, and `folder`, which a
/// process with the settings `before` has left. The handling of invalid UTF-8 may change if there
/// was none so far: under "error". Older processes noted no name of the tokenizer's file.
void require_same_settings(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now,
                           const std::string& folder);

}  // namespace bamtrain
