#pragma once
// A SentencePiece model, and the piecewise encoding that makes it fast and its memory independent
// of the length of the text.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer_model.h"

namespace bamtrain {

/// Encoding in pieces. SentencePiece takes time worse than linear, and about 90 bytes of memory a
/// byte, in the length of the text it is given. For BPE models whose normaliser is the identity and
/// which fall back to bytes (Llama, Mistral, and what `bamdata train-tokenizer` makes) the text is
/// cut first, at every place between two characters that stand side by side in no piece of the
/// vocabulary. BPE only ever merges neighbours into a piece of the vocabulary, so no merge crosses
/// such a place and the ids are exactly those of the whole text. A stretch of more than
/// kLongestStretch bytes without such a place is cut at that length, between two characters; only
/// there may ids differ from those of the whole text. With any other model, text up to that length
/// is encoded whole; longer text is cut at the last newline (else space, else character) within it.
class SentencePieceModel : public TokenizerModel {
 public:
  static constexpr size_t kLongestStretch = size_t{1} << 20;  // bytes

  /// Of a file's bytes. Error (data) naming `path` where they are no intact model.
  SentencePieceModel(const std::string& bytes, const std::string& path);
  ~SentencePieceModel() override;

  const TokenizerFacts& facts() const override { return facts_; }
  void encode(std::string_view text, TokenizerCache* cache,
              std::vector<int32_t>* ids) const override;
  std::string decode(const std::vector<int32_t>& ids) const override;
  std::string bytes(int32_t id, bool first) const override;
  TokenKind kind(int32_t id) const override;
  std::string piece(int32_t id) const override;
  /// Pieces are merged by falling score.
  float score(int32_t id) const;

 private:
  class Processor;
  class SafeCuts;

  void encode_whole(std::string_view text, std::vector<int32_t>* ids) const;
  void encode_stretch(std::string_view text, TokenizerCache* cache,
                      std::vector<int32_t>* ids) const;

  std::unique_ptr<Processor> processor_;
  std::unique_ptr<SafeCuts> cuts_;  // null: this model's text is encoded whole
  TokenizerFacts facts_;
  bool drops_first_space_ = false;  // of a decoded text
};

}  // namespace bamtrain
