#include "export/tokenizer_json_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/byte_pair_model.h"

namespace bamtrain {
namespace {

using Json = nlohmann::ordered_json;

Json added_token(int32_t id, const std::string& content, bool normalized, bool special) {
  return {{"id", id},        {"content", content},       {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized}, {"special", special}};
}

}  // namespace

Json added_tokens_json(const Tokenizer& tokenizer) {
  Json tokens = Json::array();
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    const TokenKind kind = tokenizer.kind(id);
    const std::vector<int32_t>& whole = tokenizer.user_defined();
    if (tokenizer.sentencepiece() && std::binary_search(whole.begin(), whole.end(), id)) {
      tokens.push_back(added_token(id, tokenizer.piece(id), true, false));
    }
    if (kind != TokenKind::control && kind != TokenKind::unknown) continue;
    tokens.push_back(added_token(id, tokenizer.piece(id), false, true));
  }
  if (const BytePairModel* const model = tokenizer.byte_pairs()) {
    for (const BytePairDefinition::Added& a : model->definition().added) {
      tokens.push_back(added_token(a.id, a.text, a.normalized, false));
    }
  }
  return tokens;
}

Json template_json(const Tokenizer& tokenizer, bool adds_bos) {
  const std::string bos = adds_bos ? tokenizer.piece(tokenizer.bos()) : "";
  const auto part = [](const char* kind, const std::string& id, int type) {
    return Json{{kind, {{"id", id}, {"type_id", type}}}};
  };
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  for (const int type : {0, 1}) {
    const std::string text = type == 0 ? "A" : "B";
    if (adds_bos) pair.push_back(part("SpecialToken", bos, type));
    pair.push_back(part("Sequence", text, type));
    if (type == 0) single = pair;
  }
  if (adds_bos) {
    special[bos] = {{"id", bos}, {"ids", {tokenizer.bos()}}, {"tokens", Json::array({bos})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", special}};
}

void append_member(Json* object, const std::string& key, Json value) {
  object->get_ref<Json::object_t&>().push_back({key, std::move(value)});
}

}  // namespace bamtrain
