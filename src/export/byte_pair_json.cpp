#include "export/byte_pair_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/byte_pair_model.h"
#include "export/tokenizer_json_parts.h"

namespace bamtrain {
namespace {

using Json = nlohmann::ordered_json;

Json byte_level(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

/// ByteLevel can split by GPT-2's pattern itself. If it adds a space it must do so, because it adds
/// one to every part that it receives.
Json pre_tokenizer(const BytePairDefinition& d) {
  if (d.prefix_space) return byte_level(true, !d.patterns.empty());
  Json parts = Json::array();
  for (const std::string& pattern : d.patterns) {
    parts.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  parts.push_back(byte_level(false, false));
  return {{"type", "Sequence"}, {"pretokenizers", parts}};
}

Json model_json(const BytePairModel& model) {
  const BytePairDefinition& d = model.definition();
  Json vocab = Json::object(), list = Json::array();
  const auto spelled = [&](int32_t id) {
    return spelled_bytes(d.tokens[static_cast<size_t>(id)].bytes);
  };
  // Includes added tokens: the library assigns its own ids to those missing from the vocabulary.
  for (size_t id = 0; id < d.tokens.size(); ++id) {
    if (d.tokens[id].kind == TokenKind::unused) continue;
    append_member(&vocab, model.piece(static_cast<int32_t>(id)), id);
  }
  std::vector<BytePairDefinition::Merge> merges = d.merges;
  std::stable_sort(merges.begin(), merges.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (const BytePairDefinition::Merge& m : merges) {
    list.push_back({spelled(m.left), spelled(m.right)});
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", d.whole_first},
          {"vocab", std::move(vocab)},
          {"merges", std::move(list)}};
}

}  // namespace

Json byte_pair_json(const Tokenizer& tokenizer, bool adds_bos) {
  require(tokenizer.byte_pairs() != nullptr, "a byte-level BPE");
  const BytePairDefinition& d = tokenizer.byte_pairs()->definition();
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(tokenizer)},
          {"normalizer", d.composes ? Json{{"type", "NFC"}} : Json(nullptr)},
          {"pre_tokenizer", pre_tokenizer(d)},
          {"post_processor", template_json(tokenizer, adds_bos)},
          {"decoder", byte_level(false, false)},
          {"model", model_json(*tokenizer.byte_pairs())}};
}

}  // namespace bamtrain
