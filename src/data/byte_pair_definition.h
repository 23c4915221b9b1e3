#pragma once
// A byte-level BPE as its file has it: read by huggingface_tokenizer.h and tiktoken_file.h, run by
// byte_pair_model.h.

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer_model.h"

namespace bamtrain {

struct BytePairDefinition {
  struct Token {
    std::string bytes;  // that it stands for; of a control one, its name
    TokenKind kind = TokenKind::unused;
    bool added = false;  // taken out of a text, never merged
  };
  /// Two neighbours into one. Those of lower rank go first, of equal rank the leftmost.
  struct Merge {
    int32_t left, right, result, rank;
  };
  /// Found in a text before it is cut and merged.
  struct Added {
    std::string text;
    int32_t id;
    bool normalized;  // in the normalized text
  };

  static constexpr int64_t kMostIds = int64_t{1} << 22;  // as many values as a JSON text may have

  std::vector<Token> tokens;  // by id
  std::vector<Merge> merges;
  std::vector<std::string> patterns;  // each cuts what the one before has left whole
  std::vector<Added> added;
  bool whole_first = false;   // a cut piece that is a token is not merged
  bool prefix_space = false;  // before a text that does not begin with one
  bool composes = false;      // into Unicode's normalization form C first
  int32_t bos = -1, eos = -1, pad = -1;
};

/// The token with this id, a new one without a piece where there was none. REQUIRES: 0 <= id <
/// kMostIds.
BytePairDefinition::Token& token_at(BytePairDefinition* definition, int64_t id);

/// The id of the first of `names` that is a control token, -1 with none.
int32_t control_token(const BytePairDefinition& definition, const std::vector<std::string>& names);

/// The pattern of GPT-2, which ByteLevel of Hugging Face's tokenizers has built in.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// GPT-2's spelling of bytes as characters of their own: "Ġ" for a space (its encoder.py).
std::string spelled_bytes(const std::string& bytes);
/// The bytes that `spelling` stands for; false where a character of it stands for none.
bool bytes_of_spelling(const std::string& spelling, std::string* bytes);

/// Every pair of tokens whose bytes, joined, are those of a third, of whose id is the rank: what
/// tiktoken merges by, whose files have no list. REQUIRES: the ids of normal tokens are in the
/// order of their ranks.
std::vector<BytePairDefinition::Merge> merges_by_rank(
    const std::vector<BytePairDefinition::Token>& tokens);

}  // namespace bamtrain
