#pragma once
// A tokenizer as tokenizer.json of Hugging Face's tokenizers library.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace bamtrain {

struct TokenizerJson {
  std::optional<nlohmann::ordered_json> json;
  std::string left_out;  // why there is none, a clause; empty otherwise
};

/// The same ids for every text in UTF-8, or none. A byte-level BPE always has one
/// (byte_pair_json.h). SentencePiece merges the pair whose piece has the
/// highest score, the tokenizers library that of the lowest rank in a list of pairs; both take the
/// leftmost of equal ones. A piece is always made by the same pair, its last one where its own text
/// is encoded alone: no merge before that has crossed its ends. So one pair a piece, by falling
/// score, says all.
///
/// User-defined pieces are added tokens, found in the text as SentencePiece finds them, the longest
/// first. Of a model that adds a space before a text, a text that is one such piece and no more
/// has no space before it here: the one text of each whose ids differ.
///
/// There is none of a SentencePiece model that is not exact (Tokenizer::is_exact), of one with
/// unused pieces, with merged pieces of one score, but for the runs of a
/// character (Mistral's of spaces), or of characters that are no pieces. `adds_bos`: BOS, which the
/// model has, comes before every text, where special tokens are asked for. Special tokens are those
/// that encode no text.
TokenizerJson tokenizer_json(const Tokenizer& tokenizer, bool adds_bos);

}  // namespace bamtrain
