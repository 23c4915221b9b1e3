#pragma once
// Runs a byte-level BPE: extracts added tokens from the text, splits the rest by patterns, merges
// the parts.

#include <array>

#include "data/byte_pair_definition.h"
#include "data/byte_pair_merger.h"
#include "data/split_pattern.h"
#include "data/tokenizer_model.h"

namespace bamtrain {

/// Text never encodes to special tokens: their names in a document are ordinary text, so no
/// document can fake the start of another. Hugging Face's tokenizers do so with
/// `encode_special_tokens`, tiktoken with `encode_ordinary`. Added tokens that are not special are
/// matched. Invalid UTF-8 bytes are merged separately from valid text.
class BytePairModel : public TokenizerModel {
 public:
  /// Throws Error (data) at `where` for patterns that split_pattern.h refuses, and for a vocabulary
  /// that lacks a byte.
  BytePairModel(BytePairDefinition definition, const std::string& where);

  const BytePairDefinition& definition() const { return definition_; }

  const TokenizerFacts& facts() const override { return facts_; }
  void encode(std::string_view text, TokenizerCache* cache,
              std::vector<int32_t>* ids) const override;
  std::string decode(const std::vector<int32_t>& ids) const override;
  std::string bytes(int32_t id, bool first) const override;
  TokenKind kind(int32_t id) const override;
  std::string piece(int32_t id) const override;

 private:
  class Encoding;

  class AddedTokens {
   public:
    void add(BytePairDefinition::Added token);
    bool empty() const { return tokens_.empty(); }
    /// The longest added token that `text` begins with, or null. REQUIRES: `text` is not empty.
    const BytePairDefinition::Added* at(std::string_view text) const;

   private:
    std::vector<BytePairDefinition::Added> tokens_;  // longest first
    std::array<bool, 256> begins_{};                 // whether any token begins with this byte
  };

  BytePairDefinition definition_;
  TokenizerFacts facts_;
  BytePairMerger merger_;
  std::vector<SplitPattern> patterns_;
  AddedTokens of_raw_, of_normalized_;
};

}  // namespace bamtrain
