#pragma once
// Text to token ids and back: a SentencePiece model, and the piecewise encoding that makes it fast
// and its memory independent of the length of the text.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// A SentencePiece model. Immutable after open(), so every const member may be called from any
/// number of threads at once.
///
/// Encoding in pieces. SentencePiece takes time worse than linear, and about 90 bytes of memory a
/// byte, in the length of the text it is given. For BPE models whose normaliser is the identity and
/// which fall back to bytes (Llama, Mistral, and what `bamdata train-tokenizer` makes) the text is
/// cut first, at every place between two characters that stand side by side in no piece of the
/// vocabulary. BPE only ever merges neighbours into a piece of the vocabulary, so no merge crosses
/// such a place and the ids are exactly those of the whole text. A stretch of more than
/// kLongestStretch bytes without such a place is cut at that length, between two characters; only
/// there may ids differ from those of the whole text. With any other model, text up to that length
/// is encoded whole; longer text is cut at the last newline (else space, else character) within it.
class Tokenizer {
 public:
  static constexpr size_t kLongestStretch = size_t{1} << 20;  // bytes

  /// Remembers the ids of stretches of text seen before, for any number of threads at once.
  class Cache;

  /// Reads the model file at `path`. Error (io) where it cannot be read, Error (data) where it is
  /// no intact SentencePiece model.
  static Tokenizer open(const std::string& path);
  /// Whether the file at `path` is readable, no larger than a model may be, and begins as every
  /// model does: tells most other files at the cost of one read.
  static bool begins_like_model(const std::string& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text` (UTF-8), without BOS or EOS. No text, no ids.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The same ids, appended to `*ids`; several times faster on text in natural language.
  void encode(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const;

  /// The text of `ids`; BOS and EOS have none. decode(encode(x)) == x where is_exact() and x is
  /// valid UTF-8 without U+2581, which is SentencePiece's own sign for a space.
  /// Error (data) for an id outside [0, vocab()).
  std::string decode(const std::vector<int32_t>& ids) const;

  /// The bytes that `id` adds to a text, `first` among its ids or not; several ids may make up one
  /// character. Where is_exact(), one after the other they are decode(), but for its repair of
  /// ill-formed characters; other models may drop more spaces than the first.
  /// Error (data) for an id outside [0, vocab()).
  std::string bytes(int32_t id, bool first) const;

  /// What becomes of a piece: `normal` ones are merged from text, by falling score.
  enum class Kind { normal, unknown, control, byte, unused };
  /// Error (data) for an id outside [0, vocab()).
  Kind kind(int32_t id) const;
  float score(int32_t id) const;

  /// The piece with this id as the model spells it, e.g. "▁the" or "<0x0A>".
  /// Error (data) for an id outside [0, vocab()).
  std::string piece(int32_t id) const;

  int64_t vocab() const { return vocab_; }
  int32_t bos() const { return bos_; }  // -1: the model has none
  int32_t eos() const { return eos_; }  // -1: the model has none
  int32_t pad() const { return pad_; }  // -1: the model has none
  int32_t unknown() const { return unknown_; }
  /// The identity normaliser, BPE and byte fallback: no text is changed or lost, and the ids do not
  /// depend on where it is cut (see above).
  bool is_exact() const { return cuts_ != nullptr; }
  /// Whether there are pieces that are taken out of a text before the rest of it is merged; they
  /// count as normal ones.
  bool has_user_defined() const { return has_user_defined_; }
  /// Whether text is encoded with a space before it that it has not.
  bool adds_space() const { return adds_space_; }
  /// Of the model file's bytes, 64 hexadecimal digits.
  const std::string& sha256() const { return sha256_; }

 private:
  class Model;
  class SafeCuts;

  Tokenizer() = default;
  void check_id(int32_t id) const;
  void encode_whole(std::string_view text, std::vector<int32_t>* ids) const;
  void encode_stretch(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const;

  std::unique_ptr<Model> model_;
  std::unique_ptr<SafeCuts> cuts_;  // null: this model's text is encoded whole
  std::string sha256_;
  int64_t vocab_ = 0;
  int32_t bos_ = -1, eos_ = -1, pad_ = -1, unknown_ = -1;
  bool has_user_defined_ = false, adds_space_ = false;
  bool drops_first_space_ = false;  // of a decoded text
};

/// A direct-mapped table of fixed size: a later stretch takes the place of an earlier one. Threads
/// never wait: who meets a slot that is being written does without it.
class Tokenizer::Cache {
 public:
  /// `slots`, a power of two, of 64 bytes each.
  explicit Cache(size_t slots = size_t{1} << 17);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

 private:
  friend class Tokenizer;
  class Slot;
  Slot& slot_of(const std::array<uint64_t, 3>& key) const;

  size_t size_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace bamtrain
