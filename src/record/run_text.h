#pragma once
// What reading and writing a run's text takes beside its model: the tokenizer, and where documents
// begin.

#include <cstdint>
#include <optional>
#include <string>

#include "data/manifest.h"
#include "data/tokenizer.h"
#include "train/run_config.h"

namespace bamtrain {

/// In tokenizer_config.json of an export: the SHA-256 of the file that its tokenizer.json was made
/// from, as manifests of shards have it.
inline constexpr const char* kTokenizerSha256 = "tokenizer_sha256";

/// Where a tokenizer is asked for, in messages: "--tokenizer", "sample.tokenizer".
struct TokenizerSource {
  std::string name;
  std::string path;                    // as given; empty: it is looked for
  std::string sha256;                  // of the tokenizer that made the shards; empty: not known
  std::string otherwise = "";          // a remedy beside giving the path: ", or leave it out"
  ExitCode unknown = ExitCode::usage;  // code where neither is known
};

/// The manifest beside the run's training shards, of several the last; none: there is none. Error
/// as ShardSet::open.
std::optional<Manifest> training_manifest(const RunConfig& c);
/// SHA-256 of the tokenizer that made the run's training shards, as their manifests say; empty:
/// none does. Error as ShardSet::open.
std::string training_tokenizer_sha256(const RunConfig& c);
/// `given`; where that is empty and no SHA-256 is known, the file of a passkey task that the run
/// trains on; else empty.
std::string training_tokenizer(const RunConfig& c, const std::string& given,
                               const std::string& sha256);

/// source.path. Without one, the file with that SHA-256, whatever its name, in the folder of the
/// run's shards or in one of the two folders around it. Error (data): there is none;
/// (source.unknown) where neither path nor SHA-256 is known; (io).
std::string tokenizer_path(const TokenizerSource& source, const RunConfig& c);

/// The tokenizer in that file. Error (data): another than that of the shards, or one with ids that
/// the model has not; as tokenizer_path.
Tokenizer open_tokenizer(const TokenizerSource& source, const RunConfig& c);

/// The id that begins a document: the config's, else that of the first manifest beside training
/// shards, where there is one. `sha256`: manifests of other tokenizers do not count; empty: all do.
/// Error (data, io): a manifest that cannot be read.
std::optional<int64_t> document_start(const RunConfig& c, const std::string& sha256);
/// Of text in this tokenizer's ids: as above, else the tokenizer's BOS, where it has one.
std::optional<int64_t> document_start(const RunConfig& c, const Tokenizer& tokenizer);

}  // namespace bamtrain
