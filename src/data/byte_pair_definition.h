#pragma once
// The definition of a byte-level BPE: huggingface_tokenizer.h and tiktoken_file.h read it from a
// file, byte_pair_model.h runs it.

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer_model.h"

namespace bamtrain {

struct BytePairDefinition {
  struct Token {
    std::string bytes;  // the bytes it stands for; a control token's name
    TokenKind kind = TokenKind::unused;
    bool added = false;  // matched directly in the text, never merged
  };
  /// Merges two adjacent tokens into one. Lower ranks go first; among equal ranks, the leftmost.
  struct Merge {
    int32_t left, right, result, rank;
  };
  /// Matched in the text before it is split and merged.
  struct Added {
    std::string text;
    int32_t id;
    bool normalized;  // matched in the normalized text, else in the raw text
  };

  static constexpr int64_t kMostIds = int64_t{1} << 22;  // the limit on values in a JSON text

  std::vector<Token> tokens;  // by id
  std::vector<Merge> merges;
  std::vector<std::string> patterns;  // each splits the parts that the previous one left
  std::vector<Added> added;
  bool whole_first = false;   // a split part that is a token is not merged
  bool prefix_space = false;  // prepended to text that does not begin with a space
  bool composes = false;      // normalize to Unicode NFC first
  int32_t bos = -1, eos = -1, pad = -1;
};

/// Returns the token with this id; adds an unused one if it is missing. REQUIRES: 0 <= id <
/// kMostIds.
BytePairDefinition::Token& token_at(BytePairDefinition* definition, int64_t id);

/// Returns the id of the first of `names` that is a control token, or -1.
int32_t control_token(const BytePairDefinition& definition, const std::vector<std::string>& names);

/// GPT-2's split pattern, built into ByteLevel of Hugging Face's tokenizers.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Spells bytes as printable characters, as GPT-2's encoder.py does: "Ġ" for a space.
std::string spelled_bytes(const std::string& bytes);
/// Inverse of spelled_bytes; returns false if a character of `spelling` stands for no byte.
bool bytes_of_spelling(const std::string& spelling, std::string* bytes);

/// Returns every pair of tokens whose concatenated bytes are a third token; the rank is that
/// token's id. tiktoken merges this way: its files have no merge list. REQUIRES: the ids of normal
/// tokens are in rank order.
std::vector<BytePairDefinition::Merge> merges_by_rank(
    const std::vector<BytePairDefinition::Token>& tokens);

}  // namespace bamtrain
