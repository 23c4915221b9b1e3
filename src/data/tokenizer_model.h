#pragma once
// The interface of a tokenizer's implementation: sentencepiece_model.h and byte_pair_model.h
// implement it, tokenizer.h uses it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

class TokenizerCache;

/// Kind of a vocabulary entry: `normal` ones are made from text, `control` ones stand for no text.
enum class TokenKind { normal, unknown, control, byte, unused };

/// Properties of a tokenizer; -1: no such id. Members as in Tokenizer.
struct TokenizerFacts {
  int64_t vocab = 0;
  int32_t bos = -1, eos = -1, pad = -1, unknown = -1;
  bool exact = false;
  std::vector<int32_t> user_defined = {};  // ids, ascending
  bool adds_space = false;
};

/// Immutable, so every member is thread-safe. REQUIRES: ids passed in are in the vocabulary.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;

  virtual const TokenizerFacts& facts() const = 0;
  /// Appends to `*ids`. `cache` may be null.
  virtual void encode(std::string_view text, TokenizerCache* cache,
                      std::vector<int32_t>* ids) const = 0;
  virtual std::string decode(const std::vector<int32_t>& ids) const = 0;
  virtual std::string bytes(int32_t id, bool first) const = 0;
  virtual TokenKind kind(int32_t id) const = 0;
  virtual std::string piece(int32_t id) const = 0;
};

}  // namespace bamtrain
