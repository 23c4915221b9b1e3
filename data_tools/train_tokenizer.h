#pragma once
// `bamdata train-tokenizer`: a SentencePiece model from text.

#include <cstdint>
#include <cstdio>
#include <string>

#include "data_tools/inputs.h"

namespace bamtrain {

struct TrainTokenizerOptions {
  InputOptions input;
  std::string output;  // the model file
  int64_t vocab = 32768;
  int64_t sample_bytes = 100'000'000;  // of text to train on
  bool overwrite = false;
};

struct TrainTokenizerReport {
  int64_t documents = 0, bytes = 0;            // read, left-out documents not counted
  int64_t sample_lines = 0, sample_bytes = 0;  // trained on
  TextCounts counts;
};

/// Trains as Llama's and Mistral's tokenizers were: BPE; characters outside the vocabulary fall
/// back to bytes, so that every text can be encoded and decoded exactly; no normalisation of any
/// kind; digits are tokens of their own; a space belongs to the word behind it, and a text is
/// encoded as if a space stood before it (decoding takes it away), so that a word has the same ids
/// at the start of a text as within it; runs of spaces may be pieces; pieces of at most 16
/// characters, none of which holds a newline or a tab. Ids: 0 <unk>, 1 <s> (BOS), 2 </s> (EOS), 3
/// to 258 the bytes.
///
/// Where the text is longer than `sample_bytes`, lines are drawn from all of it: the n-th line has
/// the fixed random number Rng(0, "bamdata.sample").bits(n), and those with the lowest numbers that
/// fill `sample_bytes` are trained on. They are held in memory, and training takes about ten times
/// as much again. A line of more than 4,096 bytes is cut, at spaces where it has any. The model's
/// bytes depend on the inputs' content and order, `vocab` and `sample_bytes` alone (and on
/// SentencePiece's version).
///
/// Errors: as Inputs and document_text; Error (data) where there is no text, or SentencePiece
/// refuses: most often a vocabulary too large for so little text or too small for its characters;
/// Error (io) where the output exists and `overwrite` is false, or cannot be written.
TrainTokenizerReport train_tokenizer(const TrainTokenizerOptions& options, std::FILE* log);

}  // namespace bamtrain
