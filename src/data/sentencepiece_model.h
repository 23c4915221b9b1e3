#pragma once
// A SentencePiece model, with chunked encoding that is fast and uses memory independent of the
// text's length.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer_model.h"

namespace bamtrain {

/// Chunked encoding. SentencePiece needs superlinear time, and about 90 bytes of memory per byte of
/// input. For BPE models with an identity normalizer and byte fallback (Llama, Mistral, models of
/// `bamdata train-tokenizer`) the text is split first. It is split between any two characters that
/// are adjacent in no vocabulary entry. BPE only merges neighbours into a vocabulary entry, so no
/// merge crosses a split and the ids are exactly those of the whole text. A stretch of more than
/// kLongestStretch bytes without such a place is split at that length, between two characters; only
/// there may ids differ from those of the whole text. With other models, text up to that length is
/// encoded whole; longer text is split at the last newline (else space, else character) within it.
class SentencePieceModel : public TokenizerModel {
 public:
  static constexpr size_t kLongestStretch = size_t{1} << 20;  // bytes

  /// `bytes`: the content of the file `path`. Throws Error (data) with `path` if they are not an
  /// intact model.
  SentencePieceModel(const std::string& bytes, const std::string& path);
  ~SentencePieceModel() override;

  const TokenizerFacts& facts() const override { return facts_; }
  void encode(std::string_view text, TokenizerCache* cache,
              std::vector<int32_t>* ids) const override;
  std::string decode(const std::vector<int32_t>& ids) const override;
  std::string bytes(int32_t id, bool first) const override;
  TokenKind kind(int32_t id) const override;
  std::string piece(int32_t id) const override;
  /// Merge priority: the highest score is merged first.
  float score(int32_t id) const;

 private:
  class Processor;
  class SafeCuts;

  void encode_whole(std::string_view text, std::vector<int32_t>* ids) const;
  void encode_stretch(std::string_view text, TokenizerCache* cache,
                      std::vector<int32_t>* ids) const;

  std::unique_ptr<Processor> processor_;
  std::unique_ptr<SafeCuts> cuts_;  // null: text is not split
  TokenizerFacts facts_;
  bool drops_first_space_ = false;  // of decoded text
};

}  // namespace bamtrain
