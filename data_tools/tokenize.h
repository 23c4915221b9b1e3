#pragma once
// `bamdata tokenize`: text into token shards.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "data/manifest.h"
#include "data_tools/inputs.h"
#include "data_tools/validation_split.h"

namespace bamtrain {

/// One of several parts of the inputs, each of which another process or machine takes.
struct InputPart {
  int64_t number = 1, of = 1;
  bool whole() const { return of == 1; }
};

struct TokenizeOptions {
  InputOptions input;
  std::string tokenizer;  // its file
  std::string output;     // becomes a folder with train/ and, where asked for, val/
  ValidationShare validation;
  std::optional<uint64_t> shuffle;  // the seed of a random order of training documents
  InputPart part;
  int64_t shard_tokens = 100'000'000;
  int threads = 1;
  bool eos = false;  // documents end in EOS, as they begin with BOS
  bool overwrite = false;
  /// After so long what is done is put on the disk, for another process to go on from there; or
  /// longer, so that it costs at most a twentieth of the time.
  double checkpoint_seconds = 1;
};

struct TokenizeReport {
  Manifest train;
  std::optional<Manifest> val;
  TextCounts counts;
  int64_t text_bytes = 0;  // of raw documents, decompressed
  double seconds = 0;
};

/// Writes the shards and their manifests; progress goes to `log`. The files' bytes depend on the
/// inputs' content and order, the tokenizer, `validation`, `shuffle`, `part`, `shard_tokens` and
/// `eos`, and not on `threads`, nor on how often the work was ended and went on. Memory: some
/// dozens of MB a thread, four times the longest document, and what DocumentShuffle says.
///
/// The whole output appears or nothing does. Until then it is in PartialFolder, and where a process
/// ends there, in whatever way, another one with the same options goes on from its last checkpoint;
/// before the first one, and where an input is no file, nothing is left of it but by a kill.
/// Errors: as Inputs, Tokenizer::open, PartialFolder, document_text, ShardSetWriter,
/// ValidationSplit::finish, require_same_settings; (usage) for parts that cannot be; the first one
/// in the order of the text, whatever the number of threads.
TokenizeReport tokenize(const TokenizeOptions& options, std::FILE* log);

/// What tokenize did, in lines for people.
std::string describe(const TokenizeReport& report, const std::string& output);

}  // namespace bamtrain
