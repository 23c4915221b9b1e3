#pragma once
// What reading and writing text takes beside a model: its tokenizer, and where documents begin.

#include <cstdint>
#include <optional>
#include <string>

#include "config/reader.h"
#include "data/tokenizer.h"

namespace bamtrain {

/// Where a tokenizer is asked for, in messages: "--tokenizer", "sample.tokenizer".
struct TokenizerSource {
  std::string name;
  std::string path;    // as given; empty: it is looked for
  std::string sha256;  // of the tokenizer that made the shards; empty: not known
};

/// The tokenizer at source.path. Without a path, the file *.model with that SHA-256 in the folder
/// of the run's shards or in one of the two folders around it. Error (data): no such file, another
/// tokenizer than that of the shards, or one with ids that the model has not; (usage) where neither
/// path nor SHA-256 is known; (io).
Tokenizer open_tokenizer(const TokenizerSource& source, const RunConfig& c);

/// The id that begins a document: the config's, else that of the manifest beside the training
/// shards where it is of this tokenizer, else the tokenizer's BOS; none where there is none of
/// them.
std::optional<int64_t> document_start(const RunConfig& c, const Tokenizer& tokenizer);

}  // namespace bamtrain
