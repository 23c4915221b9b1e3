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

struct TokenizeOptions {
  InputOptions input;
  std::string tokenizer;  // a SentencePiece model file
  std::string output;     // becomes a folder with train/ and, where asked for, val/
  ValidationShare validation;
  int64_t shard_tokens = 100'000'000;
  int threads = 1;
  bool eos = false;  // documents end in EOS, as they begin with BOS
  bool overwrite = false;
};

struct TokenizeReport {
  Manifest train;
  std::optional<Manifest> val;
  TextCounts counts;
  int64_t text_bytes = 0;  // of raw documents, decompressed
  double seconds = 0;
};

/// Writes the shards and their manifests; progress goes to `log`. The files' bytes depend on the
/// inputs' content and order, the tokenizer, `validation`, `shard_tokens` and `eos`, and not on
/// `threads`. Memory: some dozens of MB a thread, and four times the longest document. Either the
/// whole output appears or nothing does: on an Error (and Interrupted) what was written is removed.
/// Errors: as Inputs, Tokenizer::open, OutputFolder, document_text, ShardSetWriter,
/// ValidationSplit::finish; the first one in the order of the text, whatever the number of threads.
TokenizeReport tokenize(const TokenizeOptions& options, std::FILE* log);

/// What tokenize did, in lines for people.
std::string describe(const TokenizeReport& report, const std::string& output);

}  // namespace bamtrain
