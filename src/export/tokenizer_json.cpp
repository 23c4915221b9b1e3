#include "export/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"
#include "data/sentencepiece_model.h"
#include "export/byte_pair_json.h"
#include "export/tokenizer_json_parts.h"

namespace bamtrain {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Tokenizer::Kind;

constexpr const char* kSpace = "\u2581";

/// Whether merging can produce the token from text.
bool is_merged(const Tokenizer& tokenizer, int32_t id) {
  const std::vector<int32_t>& whole = tokenizer.user_defined();
  return tokenizer.kind(id) == Kind::normal && !std::binary_search(whole.begin(), whole.end(), id);
}

struct Merge {
  std::string left, right;
  float score;
};

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const size_t n = utf8_character_at(text, 0).bytes;
    characters.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return characters;
}

/// SentencePiece's merging.
class Pieces {
 public:
  explicit Pieces(const Tokenizer& tokenizer) {
    for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
      if (is_merged(tokenizer, id))
        scores_[tokenizer.piece(id)] = tokenizer.sentencepiece()->score(id);
    }
  }

  bool has(const std::string& piece) const { return scores_.count(piece) != 0; }

  /// The pair that makes `piece`; nullopt if no text becomes it.
  std::optional<Merge> last_merge(const std::string& piece) const {
    std::vector<std::string> symbols = characters_of(piece);
    for (;;) {
      size_t best = symbols.size();
      float score = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = scores_.find(symbols[i] + symbols[i + 1]);
        if (found == scores_.end() || (best < symbols.size() && found->second <= score)) continue;
        best = i;
        score = found->second;
      }
      if (best == symbols.size()) return std::nullopt;
      if (symbols.size() == 2) return Merge{symbols[0], symbols[1], score};
      symbols[best] += symbols[best + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }

 private:
  std::unordered_map<std::string, float> scores_;
};

/// How many times `part` repeats `character`; 0 if it contains anything else.
size_t times_of(const std::string& character, const std::string& part) {
  const std::vector<std::string> all = characters_of(part);
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const std::string& c) { return c == character; });
  return same ? all.size() : 0;
}

/// Merges that make runs of one character, all of one score.
class Runs {
 public:
  /// Returns false if `merge` is not such a merge.
  bool add(const Merge& merge) {
    if (longest_ == 0) character_ = characters_of(merge.left)[0];
    const size_t left = times_of(character_, merge.left), right = times_of(character_, merge.right);
    lengths_.insert(left + right);
    pairs_.insert({left, right});
    longest_ = std::max(longest_, left + right);
    return left > 0 && right > 0;
  }

  bool knows(const std::string& part) const { return times_of(character_, part) > 1; }

  /// Whether merging the longest possible run first gives SentencePiece's result, which merges the
  /// leftmost first. Its next merge depends only on the two runs before the remaining single
  /// characters, so texts of up to longest_ * (longest_ + 2) characters cover all cases.
  bool longest_first_is_leftmost_first() const {
    constexpr size_t kLongest = 32;
    for (size_t n = 2; longest_ <= kLongest && n <= longest_ * (longest_ + 2); ++n) {
      std::vector<size_t> text(n, 1);
      for (;;) {
        size_t leftmost = n, best = n, length = 0;
        for (size_t i = 0; i + 1 < text.size(); ++i) {
          const size_t sum = text[i] + text[i + 1];
          if (leftmost == n && lengths_.count(sum) != 0) leftmost = i;
          if (sum > length && pairs_.count({text[i], text[i + 1]}) != 0) {
            best = i;
            length = sum;
          }
          if (sum == 2) break;  // only single characters follow
        }
        if (best != leftmost) return false;
        if (best == n) break;
        text[best] = length;
        text.erase(text.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      }
    }
    return longest_ <= kLongest;
  }

 private:
  std::string character_;
  std::set<size_t> lengths_;
  std::set<std::pair<size_t, size_t>> pairs_;
  size_t longest_ = 0;
};

/// Whether merges[begin, end), which have equal scores, are in an order that gives SentencePiece's
/// ids: they make the runs of one character, longest first, and no other merge involves such a run.
bool are_runs(const std::vector<Merge>& merges, size_t begin, size_t end) {
  Runs runs;
  for (size_t i = begin; i < end; ++i) {
    if (!runs.add(merges[i])) return false;
  }
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i >= begin && i < end) continue;
    const Merge& other = merges[i];
    for (const std::string& part : {other.left, other.right, other.left + other.right}) {
      if (runs.knows(part)) return false;
    }
  }
  return runs.longest_first_is_leftmost_first();
}

/// The merges by decreasing score. Sets `left_out` to a reason if the list cannot express them.
std::vector<Merge> merges_of(const Tokenizer& tokenizer, std::string* left_out) {
  const Pieces pieces(tokenizer);
  std::vector<Merge> merges;
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    if (tokenizer.kind(id) == Kind::unused) *left_out = "it has unused pieces";
    if (first_invalid_utf8(tokenizer.piece(id)) != std::string_view::npos) {
      *left_out = "some pieces are not valid UTF-8";
      return {};
    }
    if (!is_merged(tokenizer, id)) continue;
    const std::optional<Merge> merge = pieces.last_merge(tokenizer.piece(id));
    if (!merge) continue;
    if (!pieces.has(merge->left) || !pieces.has(merge->right)) {
      *left_out = "it merges characters that are not in the vocabulary";
    }
    merges.push_back(*merge);
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    const size_t of_a = a.left.size() + a.right.size(), of_b = b.left.size() + b.right.size();
    return a.score != b.score ? a.score > b.score : of_a > of_b;
  });
  for (size_t begin = 0, end = 0; begin < merges.size(); begin = end) {
    while (end < merges.size() && merges[end].score == merges[begin].score) ++end;
    if (end - begin > 1 && !are_runs(merges, begin, end)) {
      *left_out = "pieces share a score";
    }
  }
  return merges;
}

Json model_of(const Tokenizer& tokenizer, const std::vector<Merge>& merges) {
  Json vocab = Json::object(), list = Json::array();
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) append_member(&vocab, tokenizer.piece(id), id);
  for (const Merge& m : merges) list.push_back({m.left, m.right});
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", tokenizer.piece(tokenizer.unknown())},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(list)}};
}

Json replaced(const char* what, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

Json sequence(const char* member, const Json& parts) {
  return {{"type", "Sequence"}, {member, parts}};
}

/// The library normalizes the patterns of added tokens like texts, if the text is exactly such a
/// token. This removes the space that would be added at the text's beginning.
Json without_space_before(const Tokenizer& tokenizer) {
  std::string any;
  for (const int32_t id : tokenizer.user_defined()) {
    any += any.empty() ? "" : "|";
    for (const char c : tokenizer.piece(id)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
      any += plain ? std::string(1, c) : std::string("\\") + c;
    }
  }
  const std::string pattern = std::string("\\A") + kSpace + "(?=(?:" + any + ")\\z)";
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}};
}

Json normalizer_of(const Tokenizer& tokenizer) {
  Json parts = Json::array();
  if (tokenizer.adds_space()) parts.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  parts.push_back(replaced(" ", kSpace));
  if (tokenizer.adds_space() && !tokenizer.user_defined().empty()) {
    parts.push_back(without_space_before(tokenizer));
  }
  return sequence("normalizers", parts);
}

Json decoder_of(const Tokenizer& tokenizer) {
  Json parts = {replaced(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (tokenizer.adds_space()) {
    parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return sequence("decoders", parts);
}

}  // namespace

TokenizerJson tokenizer_json(const Tokenizer& tokenizer, bool adds_bos) {
  require(!adds_bos || tokenizer.bos() >= 0, "a model with BOS");
  TokenizerJson result;
  if (tokenizer.byte_pairs()) {
    result.json = byte_pair_json(tokenizer, adds_bos);
    return result;
  }
  if (!tokenizer.is_exact()) {
    result.left_out = "it is not a BPE with byte fallback, or it normalizes the text";
  }
  if (!result.left_out.empty()) return result;
  const std::vector<Merge> merges = merges_of(tokenizer, &result.left_out);
  if (!result.left_out.empty()) return result;
  result.json = Json{{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added_tokens_json(tokenizer)},
                     {"normalizer", normalizer_of(tokenizer)},
                     {"pre_tokenizer", nullptr},
                     {"post_processor", template_json(tokenizer, adds_bos)},
                     {"decoder", decoder_of(tokenizer)},
                     {"model", model_of(tokenizer, merges)}};
  return result;
}

}  // namespace bamtrain
