#include "data/byte_pair_model.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "data/tokenizer_cache.h"

namespace bamtrain {
namespace {

using Added = BytePairDefinition::Added;

/// Unicode NFC of valid UTF-8.
std::string composed(std::string_view text) {
  // Text of characters below U+0300, whose lead bytes are below 0xCC, is already in NFC.
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
  if (plain) return std::string(text);
  utf8proc_uint8_t* found = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &found,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(found, &std::free);
  if (bytes < 0) {
    throw Error::fault(ExitCode::internal, "utf8proc",
                       std::string("cannot normalize a text: ") + utf8proc_errmsg(bytes),
                       "report the text that caused this");
  }
  return {reinterpret_cast<const char*>(found), static_cast<size_t>(bytes)};
}

/// Throws Error unless every byte has a token.
BytePairDefinition checked(BytePairDefinition definition, const std::string& where) {
  std::array<bool, 256> there{};
  for (const BytePairDefinition::Token& t : definition.tokens) {
    if (t.kind == TokenKind::normal && !t.added && t.bytes.size() == 1) {
      there[static_cast<unsigned char>(t.bytes[0])] = true;
    }
  }
  const auto missing = std::find(there.begin(), there.end(), false);
  if (missing != there.end()) {
    throw Error(ExitCode::data, where, "a byte-level BPE, with a token for each byte",
                "no token for byte " + std::to_string(missing - there.begin()),
                "train the tokenizer with the full byte alphabet");
  }
  return definition;
}

}  // namespace

BytePairModel::BytePairModel(BytePairDefinition definition, const std::string& where)
    : definition_(checked(std::move(definition), where)), merger_(definition_) {
  for (const std::string& p : definition_.patterns) patterns_.emplace_back(p, where);
  for (Added a : definition_.added) {
    if (a.normalized && definition_.composes) a.text = composed(a.text);
    (a.normalized ? of_normalized_ : of_raw_).add(std::move(a));
  }
  facts_.vocab = static_cast<int64_t>(definition_.tokens.size());
  facts_.bos = definition_.bos;
  facts_.eos = definition_.eos;
  facts_.pad = definition_.pad;
  facts_.exact = !definition_.composes && !definition_.prefix_space;
  for (const auto& added : definition_.added) facts_.user_defined.push_back(added.id);
  std::sort(facts_.user_defined.begin(), facts_.user_defined.end());
  facts_.adds_space = definition_.prefix_space;
}

void BytePairModel::AddedTokens::add(Added token) {
  if (token.text.empty()) return;
  begins_[static_cast<unsigned char>(token.text[0])] = true;
  const auto shorter = std::find_if(tokens_.begin(), tokens_.end(), [&](const Added& a) {
    return a.text.size() < token.text.size();
  });
  tokens_.insert(shorter, std::move(token));
}

const Added* BytePairModel::AddedTokens::at(std::string_view text) const {
  if (!begins_[static_cast<unsigned char>(text[0])]) return nullptr;
  const auto found = std::find_if(tokens_.begin(), tokens_.end(),
                                  [&](const Added& a) { return text.starts_with(a.text); });
  return found == tokens_.end() ? nullptr : &*found;
}

/// Encodes one text.
class BytePairModel::Encoding {
 public:
  Encoding(const BytePairModel& model, TokenizerCache* cache, std::vector<int32_t>* ids)
      : model_(model), cache_(cache), ids_(*ids) {
    for (const SplitPattern& p : model.patterns_) matchers_.emplace_back(p);
  }

  /// Splits the text into valid UTF-8 and runs of invalid bytes.
  void any(std::string_view text) {
    while (!text.empty()) {
      const size_t valid = std::min(first_invalid_utf8(text), text.size());
      if (valid > 0) raw(text.substr(0, valid));
      size_t bad = valid;
      while (bad < text.size()) {
        const Utf8Character c = utf8_character_at(text, bad);
        if (c.valid) break;
        bad += c.bytes;
      }
      if (bad > valid) merge(text.substr(valid, bad - valid));
      text.remove_prefix(bad);
    }
  }

 private:
  void raw(std::string_view text) {
    without(model_.of_raw_, text, [&](std::string_view part) {
      if (model_.definition_.composes) {
        normalized(composed(part));
      } else {
        normalized(part);
      }
    });
  }

  void normalized(std::string_view text) {
    without(model_.of_normalized_, text, [&](std::string_view part) {
      if (model_.definition_.prefix_space && !part.starts_with(' ')) {
        cut(0, " " + std::string(part));
      } else {
        cut(0, part);
      }
    });
  }

  /// Appends the ids of the added tokens in `text` (leftmost, then longest) and calls `rest` on
  /// each part between them.
  template <class Rest>
  void without(const AddedTokens& tokens, std::string_view text, const Rest& rest) {
    size_t begin = 0;
    for (size_t at = 0; !tokens.empty() && at < text.size();) {
      const Added* const found = tokens.at(text.substr(at));
      if (!found) {
        ++at;
        continue;
      }
      if (at > begin) rest(text.substr(begin, at - begin));
      ids_.push_back(found->id);
      begin = at += found->text.size();
    }
    if (begin < text.size()) rest(text.substr(begin));
  }

  void cut(size_t pattern, std::string_view text) {
    if (pattern == matchers_.size()) return merge(text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = matchers_[pattern].next(text, begin);
      cut(pattern + 1, text.substr(begin, end - begin));
      begin = end;
    }
  }

  void merge(std::string_view piece) {
    if (!cache_ || !TokenizerCache::keeps(piece)) return model_.merger_.merge(piece, &ids_);
    TokenizerCache::Place place = cache_->place_of(piece);
    if (place.read(&ids_)) return;
    const size_t before = ids_.size();
    model_.merger_.merge(piece, &ids_);
    place.write(std::span(ids_).subspan(before));
  }

  const BytePairModel& model_;
  TokenizerCache* cache_;
  std::vector<int32_t>& ids_;
  std::vector<SplitPattern::Matcher> matchers_;
};

void BytePairModel::encode(std::string_view text, TokenizerCache* cache,
                           std::vector<int32_t>* ids) const {
  Encoding(*this, cache, ids).any(text);
}

std::string BytePairModel::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) text += bytes(id, false);
  return replace_invalid_utf8(text);
}

std::string BytePairModel::bytes(int32_t id, bool) const {
  return kind(id) == TokenKind::normal ? definition_.tokens[static_cast<size_t>(id)].bytes : "";
}

TokenKind BytePairModel::kind(int32_t id) const {
  return definition_.tokens[static_cast<size_t>(id)].kind;
}

std::string BytePairModel::piece(int32_t id) const {
  const BytePairDefinition::Token& t = definition_.tokens[static_cast<size_t>(id)];
  return t.kind == TokenKind::normal && !t.added ? spelled_bytes(t.bytes) : t.bytes;
}

}  // namespace bamtrain
