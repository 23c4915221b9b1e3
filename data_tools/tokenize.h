#pragma once
// `bamdata tokenize`: makes token shards from text.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "data/manifest.h"
#include "data_tools/inputs.h"
#include "data_tools/validation_split.h"

namespace bamtrain {

/// One of several parts of the inputs, for processing by several processes or machines.
struct InputPart {
  int64_t number = 1, of = 1;
  bool whole() const { return of == 1; }
};

struct TokenizeOptions {
  InputOptions input;
  std::string tokenizer;  // the tokenizer's file
  std::string output;     // new folder with train/ and, if requested, val/
  ValidationShare validation;
  std::optional<uint64_t> shuffle;  // seed of a random order of training documents
  InputPart part;
  int64_t shard_tokens = 100'000'000;
  int threads = 1;
  bool eos = false;  // end documents with EOS
  bool overwrite = false;
  /// Interval of checkpoints from which another process can resume. It grows so that checkpoints
  /// take at most a twentieth of the time.
  double checkpoint_seconds = 1;
};

struct TokenizeReport {
  Manifest train;
  std::optional<Manifest> val;
  TextCounts counts;
  int64_t text_bytes = 0;  // bytes of raw documents, decompressed
  double seconds = 0;
};

/// Writes the shards, their manifests and a copy of the tokenizer's file next to them; progress
/// goes to `log`. The files' bytes depend on the inputs' content and order, the tokenizer and its
/// name, `validation`, `shuffle`, `part`, `shard_tokens` and `eos`. They do not depend on `threads`
/// or on how often the work was interrupted and resumed. Memory: some dozens of MB per thread, four
/// times the longest document, and that of DocumentShuffle.
///
/// The output appears complete or not at all. Until then it is in PartialFolder. If a process ends
/// there, in whatever way, another one with the same options resumes from its last checkpoint.
/// Before the first checkpoint, and if an input is not a file, an ended process leaves nothing
/// unless it is killed. Errors: as Inputs, Tokenizer::open, PartialFolder, document_text,
/// ShardSetWriter, ValidationSplit::finish, require_same_settings; Error (usage) for impossible
/// parts, and for a tokenizer whose name cannot stand next to shards (tokenizer_name_fault). The
/// first error in text order is thrown, for any number of threads.
TokenizeReport tokenize(const TokenizeOptions& options, std::FILE* log);

/// Human-readable lines about what tokenize did.
std::string describe(const TokenizeReport& report, const std::string& output);

}  // namespace bamtrain
