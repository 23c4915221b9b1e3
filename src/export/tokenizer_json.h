#pragma once
// Converts a tokenizer to tokenizer.json of Hugging Face's tokenizers library.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace bamtrain {

struct TokenizerJson {
  std::optional<nlohmann::ordered_json> json;
  std::string left_out;  // a clause: why there is no JSON; empty if there is
};

/// Returns a tokenizer.json that gives the same ids for every UTF-8 text, or no JSON. A byte-level
/// BPE always has one (byte_pair_json.h). SentencePiece merges the pair whose token has the highest
/// score. The tokenizers library merges the pair of lowest rank in a list. Both take the leftmost
/// of equal ones. A token is always made by the same pair: the last merge when its own text is
/// encoded alone, since no earlier merge crosses its ends. So one pair per token, by decreasing
/// score, is enough.
///
/// User-defined tokens become added tokens, matched in the text as SentencePiece does, longest
/// first. If the model adds a space before a text, a text that is exactly one such token gets no
/// space here. Only these texts have different ids.
///
/// There is no JSON for a SentencePiece model that
/// - is not exact (Tokenizer::is_exact),
/// - has unused tokens,
/// - merges characters that are not tokens,
/// - or has merged tokens of equal score, except runs of one character (Mistral's runs of spaces).
///
/// `adds_bos`: BOS precedes every text when special tokens are requested; the model must have BOS.
/// Special tokens are those that encode no text.
TokenizerJson tokenizer_json(const Tokenizer& tokenizer, bool adds_bos);

}  // namespace bamtrain
