#pragma once
// Text to token ids and back: a SentencePiece model or a byte-level BPE.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer_cache.h"
#include "data/tokenizer_model.h"

namespace bamtrain {

class BytePairModel;
class SentencePieceModel;

/// A tokenizer's file at work: a SentencePiece model (sentencepiece_model.h), Hugging Face's
/// tokenizer.json of a byte-level BPE (huggingface_tokenizer.h), tiktoken's ranks or Mistral's
/// tekken.json (tiktoken_file.h), told by what is in it. Immutable after open(), so every const
/// member may be called from any number of threads at once.
class Tokenizer {
 public:
  using Kind = TokenKind;
  using Cache = TokenizerCache;

  /// Reads the file at `path`. Error (io) where it cannot be read, Error (data) where it is none of
  /// those, damaged, or a tokenizer that this project does not do.
  static Tokenizer open(const std::string& path);
  /// Whether the file at `path` is readable, no larger than a tokenizer may be, and begins as every
  /// one of those does: tells most other files at the cost of one read.
  static bool begins_like_tokenizer(const std::string& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text` (UTF-8), without BOS or EOS. No text, no ids.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The same ids, appended to `*ids`; several times faster on text in natural language.
  void encode(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const;

  /// The text of `ids`; control pieces have none. decode(encode(x)) == x where is_exact() and x is
  /// valid UTF-8, with SentencePiece without U+2581, which is its own sign for a space.
  /// Error (data) for an id outside [0, vocab()).
  std::string decode(const std::vector<int32_t>& ids) const;

  /// The bytes that `id` adds to a text, `first` among its ids or not; several ids may make up one
  /// character. Where is_exact(), one after the other they are decode(), but for its repair of
  /// ill-formed characters; other models may drop more spaces than the first.
  /// Error (data) for an id outside [0, vocab()).
  std::string bytes(int32_t id, bool first) const;

  /// Error (data) for an id outside [0, vocab()).
  Kind kind(int32_t id) const;

  /// The piece with this id as its file spells it, e.g. "▁the", "<0x0A>", "Ġthe".
  /// Error (data) for an id outside [0, vocab()).
  std::string piece(int32_t id) const;

  int64_t vocab() const { return facts().vocab; }      // ids; those of no piece count
  int32_t bos() const { return facts().bos; }          // -1: it has none
  int32_t eos() const { return facts().eos; }          // -1: it has none
  int32_t pad() const { return facts().pad; }          // -1: it has none
  int32_t unknown() const { return facts().unknown; }  // -1: it has none
  /// BPE that falls back to bytes, and no normalization: no text is changed or lost, and the ids do
  /// not depend on where SentencePiece's is cut.
  bool is_exact() const { return facts().exact; }
  /// Ids of the pieces that are taken out of a text before the rest of it is merged, ascending;
  /// they count as normal ones.
  const std::vector<int32_t>& user_defined() const { return facts().user_defined; }
  /// Whether text is encoded with a space before it that it has not.
  bool adds_space() const { return facts().adds_space; }
  /// Of the file's bytes, 64 hexadecimal digits.
  const std::string& sha256() const { return sha256_; }
  /// Null of another kind.
  const SentencePieceModel* sentencepiece() const;
  const BytePairModel* byte_pairs() const;

 private:
  Tokenizer() = default;
  const TokenizerFacts& facts() const { return model_->facts(); }
  void check_id(int32_t id) const;

  std::unique_ptr<const TokenizerModel> model_;
  std::string sha256_;
};

}  // namespace bamtrain
