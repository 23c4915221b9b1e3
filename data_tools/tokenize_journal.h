#pragma once
// How far `bamdata tokenize` is: what another process of it needs to go on from there.

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

  /// What the bytes of the output depend on, by the names of the command line: a process with other
  /// settings does not go on.
  nlohmann::ordered_json settings;

  Inputs::Position position;  // behind which document of the inputs all the rest is
  int64_t text_bytes = 0;
  TextCounts counts;
  double seconds = 0;  // that all processes took
  std::vector<std::string> warnings;
  ShardSetWriter::State train, val;
  ValidationSplit::State split;
  std::optional<DocumentShuffle::State> shuffle;
  /// Buckets of the shuffle, or 0 without it, that are in their shards. From the first one on all
  /// inputs have been read, and the validation set is complete.
  std::optional<int64_t> placed;
  /// SHA-256 of the training set's manifest, where all is done but for the output's move to its
  /// place; "" before.
  std::string finished;
};

/// Error (ExitCode::io) naming file and field for anything that write_journal does not write, and
/// where the file cannot be read.
TokenizeJournal read_journal(const std::string& path);

/// The file holds the former journal or this one, whatever happens. Error (ExitCode::io).
void write_journal(const std::string& path, const TokenizeJournal& journal);

/// Error (ExitCode::usage) naming the first of the settings that is another one, and `folder`,
/// which a process with the settings `before` has left. The way in which bad UTF-8 is dealt with
/// may be another one where there was none: under "error".
void require_same_settings(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now,
                           const std::string& folder);

}  // namespace bamtrain
