#pragma once
// A byte-level BPE at work: added tokens are taken out of the text, patterns cut the rest, the
// pieces are merged.

#include <array>

#include "data/byte_pair_definition.h"
#include "data/byte_pair_merger.h"
#include "data/split_pattern.h"
#include "data/tokenizer_model.h"

namespace bamtrain {

/// Special tokens never come from text: their names in a document are text like any other (what
/// `encode_special_tokens` of Hugging Face's tokenizers and `encode_ordinary` of tiktoken do), so
/// that no document can forge the beginning of another. Added tokens that are not special do.
/// Bytes that are no UTF-8 are merged among themselves.
class BytePairModel : public TokenizerModel {
 public:
  /// Error (data) at `where` for patterns that are refused (split_pattern.h), and for a vocabulary
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
    /// The longest that `text`, which is not empty, begins with; null: with none.
    const BytePairDefinition::Added* at(std::string_view text) const;

   private:
    std::vector<BytePairDefinition::Added> tokens_;  // the longest first
    std::array<bool, 256> begins_{};                 // with this byte one begins
  };

  BytePairDefinition definition_;
  TokenizerFacts facts_;
  BytePairMerger merger_;
  std::vector<SplitPattern> patterns_;
  AddedTokens of_raw_, of_normalized_;
};

}  // namespace bamtrain
