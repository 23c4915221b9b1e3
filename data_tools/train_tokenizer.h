#pragma once
// `bamdata train-tokenizer`: trains a SentencePiece model on text.

#include <cstdint>
#include <cstdio>
#include <string>

#include "data_tools/inputs.h"

namespace bamtrain {

struct TrainTokenizerOptions {
  InputOptions input;
  std::string output;  // the model file
  int64_t vocab = 32768;
  int64_t sample_bytes = 100'000'000;  // size of the training sample
  bool overwrite = false;
};

struct TrainTokenizerReport {
  int64_t documents = 0, bytes = 0;            // read, without skipped documents
  int64_t sample_lines = 0, sample_bytes = 0;  // trained on
  TextCounts counts;
};

/// Trains like the tokenizers of Llama and Mistral: BPE with byte fallback for characters outside
/// the vocabulary, so that every text can be encoded and decoded exactly. No normalization of any
/// kind; digits are separate tokens. A space belongs to the following word. Text is encoded with a
/// leading space, which decoding removes, so a word has the same ids at the start of a text and
/// inside it. Runs of spaces may be vocabulary entries. Entries have at most 16 characters, without
/// newlines or tabs. Ids: 0 <unk>, 1 <s> (BOS), 2 </s> (EOS), 3 to 258 the bytes.
///
/// If the text is longer than `sample_bytes`, lines are sampled from all of it. The n-th line has
/// the fixed random number Rng(0, "bamdata.sample").bits(n). The lines with the lowest numbers that
/// fill `sample_bytes` are used. They are held in memory, and training takes about ten times as
/// much again. Lines of more than 4,096 bytes are split, at spaces if possible. The model's bytes
/// depend only on the inputs' content and order, `vocab` and `sample_bytes` (and on SentencePiece's
/// version).
///
/// Errors: as Inputs and document_text. Throws Error (data) if there is no text, or SentencePiece
/// refuses: usually the vocabulary is too large for so little text or too small for its characters.
/// Throws Error (io) if the output exists and `overwrite` is false, or cannot be written.
TrainTokenizerReport train_tokenizer(const TrainTokenizerOptions& options, std::FILE* log);

}  // namespace bamtrain
