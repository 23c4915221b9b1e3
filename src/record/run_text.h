#pragma once
// What reading and writing a run's text needs in addition to its model: the tokenizer, and where
// documents begin.

#include <cstdint>
#include <optional>
#include <string>

#include "data/manifest.h"
#include "data/tokenizer.h"
#include "train/run_config.h"

namespace bamtrain {

/// In tokenizer_config.json of an export: the SHA-256 of the file that its tokenizer.json was made
/// from, as in the manifests of shards.
inline constexpr const char* kTokenizerSha256 = "tokenizer_sha256";

/// How messages refer to the tokenizer: "--tokenizer", "sample.tokenizer".
struct TokenizerSource {
  std::string name;
  std::string path;                    // as the user wrote it; empty: search for it
  std::string sha256;                  // of the tokenizer that made the shards; empty: unknown
  std::string run_folder = "";         // its files are searched first; empty: unknown
  std::string otherwise = "";          // another remedy than giving the path: ", or leave it out"
  ExitCode unknown = ExitCode::usage;  // exit code if neither is known
};

/// The manifest next to the run's training shards, the last one of several; empty if there is none.
/// Throws Error as ShardSet::open.
std::optional<Manifest> training_manifest(const RunConfig& c);
/// SHA-256 of the tokenizer that made the run's training shards, from their manifests; empty:
/// unknown. Throws Error as ShardSet::open.
std::string training_tokenizer_sha256(const RunConfig& c);
/// Returns `given`. If that is empty and no SHA-256 is known, returns the tokenizer file of a
/// passkey task that the run trains on, or empty.
std::string training_tokenizer(const RunConfig& c, const std::string& given,
                               const std::string& sha256);

/// Returns source.path. If it is empty, searches for a file with that SHA-256: first in the run's
/// folder, whatever its name; then the file that the manifest next to the run's shards names; then,
/// whatever its name, in the folder of the shards and in the two folders above it. Throws Error:
/// (data) if there is no such file; (source.unknown) if neither path nor SHA-256 is known; (io);
/// as read_manifest.
std::string tokenizer_path(const TokenizerSource& source, const RunConfig& c);

/// Opens the tokenizer at tokenizer_path. Throws Error (data) if it is not the tokenizer of the
/// shards or has ids that the model lacks; otherwise as tokenizer_path.
Tokenizer open_tokenizer(const TokenizerSource& source, const RunConfig& c);

/// The id that begins a document: the config's, else that of the first manifest next to training
/// shards. `sha256`: ignore manifests of other tokenizers; empty: use all. Throws Error (data, io)
/// if a manifest cannot be read.
std::optional<int64_t> document_start(const RunConfig& c, const std::string& sha256);
/// For text in this tokenizer's ids: as above, else the tokenizer's BOS if it has one.
std::optional<int64_t> document_start(const RunConfig& c, const Tokenizer& tokenizer);

}  // namespace bamtrain
