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

/// A tokenizer loaded from a file: a SentencePiece model (sentencepiece_model.h), Hugging Face's
/// tokenizer.json of a byte-level BPE (huggingface_tokenizer.h), tiktoken's ranks or Mistral's
/// tekken.json (tiktoken_file.h), recognized by content. Immutable after open(), so every const
/// member is thread-safe.
class Tokenizer {
 public:
  using Kind = TokenKind;
  using Cache = TokenizerCache;

  static constexpr int64_t kMostBytes = int64_t{1} << 28;  // the largest in use have ten million

  /// Reads the file at `path`. Throws Error (io) if it cannot be read, and Error (data) if it has
  /// another format, or is damaged or unsupported.
  static Tokenizer open(const std::string& path);
  /// Whether the file at `path` is readable, not larger than a tokenizer may be, and begins like
  /// one of those formats. Rules out most other files with a single read.
  static bool begins_like_tokenizer(const std::string& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text` (UTF-8), without BOS or EOS. Empty text has no ids.
  std::vector<int32_t> encode(std::string_view text) const;
  /// Appends the same ids to `*ids`; several times faster on natural language.
  void encode(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const;

  /// The text of `ids`; control tokens have no text. decode(encode(x)) == x if is_exact() and x is
  /// valid UTF-8; with SentencePiece, x must also not contain U+2581, its sign for a space. Throws
  /// Error (data) for an id outside [0, vocab()).
  std::string decode(const std::vector<int32_t>& ids) const;

  /// The bytes that `id` adds to a text; `first`: whether it is the first id. Several ids may make
  /// up one character. If is_exact(), their concatenation is decode(), except that decode() repairs
  /// invalid UTF-8; other models may drop more spaces than the first. Throws Error (data) for an id
  /// outside [0, vocab()).
  std::string bytes(int32_t id, bool first) const;

  /// Throws Error (data) for an id outside [0, vocab()).
  Kind kind(int32_t id) const;

  /// The token with this id as spelled in the file, e.g. "▁the", "<0x0A>", "Ġthe". Throws Error
  /// (data) for an id outside [0, vocab()).
  std::string piece(int32_t id) const;

  int64_t vocab() const { return facts().vocab; }      // number of ids, including unused ones
  int32_t bos() const { return facts().bos; }          // -1: missing
  int32_t eos() const { return facts().eos; }          // -1: missing
  int32_t pad() const { return facts().pad; }          // -1: missing
  int32_t unknown() const { return facts().unknown; }  // -1: missing
  /// BPE with byte fallback and no normalization: no text is changed or lost, and the ids do not
  /// depend on where text for SentencePiece is split.
  bool is_exact() const { return facts().exact; }
  /// Ids of the tokens that are matched in a text before the rest is merged, ascending. Their kind
  /// is normal.
  const std::vector<int32_t>& user_defined() const { return facts().user_defined; }
  /// Whether encoding adds a space before the text.
  bool adds_space() const { return facts().adds_space; }
  /// The file, as given to open().
  const std::string& path() const { return path_; }
  /// SHA-256 of the file, 64 hex digits.
  const std::string& sha256() const { return sha256_; }
  /// Null if the tokenizer is of another kind.
  const SentencePieceModel* sentencepiece() const;
  const BytePairModel* byte_pairs() const;

 private:
  Tokenizer() = default;
  const TokenizerFacts& facts() const { return model_->facts(); }
  void check_id(int32_t id) const;

  std::unique_ptr<const TokenizerModel> model_;
  std::string path_, sha256_;
};

}  // namespace bamtrain
