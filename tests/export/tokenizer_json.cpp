// tokenizer.json: a plain reimplementation of the tokenizers library reads it and must give
// SentencePiece's ids. What the format cannot express is left out.

#include "export/tokenizer_json.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "tools/support.h"
#include "train/support.h"

namespace bamtrain {
namespace {

using namespace testing;
using Json = nlohmann::ordered_json;

/// The library's BPE with byte fallback, with one pass over the text per merge.
class Library {
 public:
  explicit Library(const Json& json) : json_(json) {
    for (const auto& [piece, id] : json["model"]["vocab"].items()) vocab_[piece] = id;
    for (const Json& merge : json["model"]["merges"]) {
      const size_t rank = ranks_.size();
      ranks_[{merge[0].get<std::string>(), merge[1].get<std::string>()}] = rank;
    }
    for (const Json& token : json["added_tokens"]) {
      if (token["normalized"] == true) tokens_.push_back(token["content"]);
    }
  }

  std::vector<int32_t> encode(std::string text) const {
    for (const Json& n : json_["normalizer"]["normalizers"]) {
      if (n["type"] == "Prepend" && !text.empty()) text = n["prepend"].get<std::string>() + text;
      if (n["type"] != "Replace") continue;
      if (n["pattern"].contains("Regex")) {
        if (is_space_and_token(text)) text.erase(0, std::string(kSpaceSign).size());
        continue;
      }
      const std::string what = n["pattern"]["String"], by = n["content"];
      for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
        text.replace(at, what.size(), by);
      }
    }
    std::vector<int32_t> ids;
    std::string rest;
    for (size_t at = 0; at < text.size();) {
      std::string token;  // the longest token that begins here
      for (const std::string& t : tokens_) {
        if (t.size() > token.size() && text.compare(at, t.size(), t) == 0) token = t;
      }
      if (token.empty()) {
        rest += text[at++];
        continue;
      }
      merge(rest, &ids);
      rest.clear();
      ids.push_back(vocab_.at(token));
      at += token.size();
    }
    merge(rest, &ids);
    return ids;
  }

 private:
  static constexpr const char* kSpaceSign = "\u2581";

  bool is_space_and_token(const std::string& text) const {
    return std::any_of(tokens_.begin(), tokens_.end(),
                       [&](const std::string& t) { return text == kSpaceSign + t; });
  }

  void merge(const std::string& text, std::vector<int32_t>* ids) const {
    std::vector<std::string> symbols;
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      const std::string character = text.substr(at, end - at);
      if (vocab_.count(character) != 0) {
        symbols.push_back(character);
      } else {
        for (const char byte : character) {
          char name[8];
          std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(byte));
          symbols.push_back(name);
        }
      }
      at = end;
    }
    for (;;) {
      size_t best = ranks_.size(), place = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = ranks_.find({symbols[i], symbols[i + 1]});
        if (found == ranks_.end() || found->second >= best) continue;
        best = found->second;
        place = i;
      }
      if (best == ranks_.size()) break;
      symbols[place] += symbols[place + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    for (const std::string& symbol : symbols) ids->push_back(vocab_.at(symbol));
  }

  Json json_;
  std::vector<std::string> tokens_;  // added tokens that are matched in the normalized text
  std::map<std::string, int32_t> vocab_;
  std::map<std::pair<std::string, std::string>, size_t> ranks_;
};

Tokenizer tokenizer_of(const Workplace& w, const std::string& model) {
  write_bytes(w.path("t.model"), model);
  return Tokenizer::open(w.path("t.model"));
}

/// A vocabulary entry as it ends a model's bytes: a message with a text and a score.
std::string piece_message(const std::string& text, float score) {
  std::string body = "\x0A" + std::string(1, static_cast<char>(text.size())) + text + "\x15";
  body.append(reinterpret_cast<const char*>(&score), sizeof score);
  return "\x0A" + std::string(1, static_cast<char>(body.size())) + body;
}

/// Sentences, and texts of few distinct characters, in which pairs overlap.
std::vector<std::string> sample_texts() {
  std::vector<std::string> texts = sample_sentences();
  for (const char* text :
       {"", " ", "  ", "a", " a", "a ", "two  spaces\n\tand a tab ", "\n\n\n", "1234567890 3.14",
        "Gr\u00f6\u00dfe \u2014 \u4f60\u597d \U0001F642\U0001F9D1\u200D\U0001F680", "<s>",
        "</s> <unk><0x0A>", "\u2581\u2581", "\x01\x7f"}) {
    texts.push_back(text);
  }
  const Rng rng(7, "texts");
  const std::string few = "  aeornt.";
  for (uint64_t n = 0; n < 2000; ++n) {
    std::string text;
    for (uint64_t i = 0; i < 3 + n % 30; ++i) {
      text += few[static_cast<size_t>(rng.uniform(n * 64 + i) * static_cast<double>(few.size()))];
    }
    texts.push_back(text);
  }
  return texts;
}

void check_same_ids(const Tokenizer& tokenizer) {
  const TokenizerJson made = tokenizer_json(tokenizer, true);
  INFO(made.left_out);
  REQUIRE(made.json);
  const Library library(*made.json);
  int different = 0;
  for (const std::string& text : sample_texts()) {
    if (library.encode(text) == tokenizer.encode(text)) continue;
    UNSCOPED_INFO("differs: " << text);
    ++different;
  }
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("the list of merges gives the ids of SentencePiece") {
  const Workplace w;
  for (const char* dummy_prefix : {"true", "false"}) {
    auto settings = llama_settings();
    settings["add_dummy_prefix"] = dummy_prefix;
    INFO("dummy prefix: " << dummy_prefix);
    const Tokenizer tokenizer = tokenizer_of(w, trained_model(settings));
    check_same_ids(tokenizer);
    const Json json = *tokenizer_json(tokenizer, false).json;
    CHECK(json["normalizer"]["normalizers"].size() == (tokenizer.adds_space() ? 2 : 1));
    CHECK(json["decoder"]["decoders"].size() == (tokenizer.adds_space() ? 4 : 3));
    CHECK(tokenizer.adds_space() == (dummy_prefix == std::string("true")));
  }
}

TEST_CASE("the list of merges gives the ids of Mistral's models") {
  const auto path = [](const char* name) {
    return shared_data(std::string("tokenizer/") + name + ".model");
  };
  for (const char* name : {"mistral-7b-v0.1", "mistral-7b-v0.3", "mixtral-8x22b"}) {
    if (!path(name).empty()) check_same_ids(Tokenizer::open(path(name)));
  }
}

TEST_CASE("user-defined pieces are added tokens, and a text of one alone has no space before it") {
  const Workplace w;
  for (const char* dummy_prefix : {"true", "false"}) {
    auto settings = llama_settings();
    settings["add_dummy_prefix"] = dummy_prefix;
    settings["user_defined_symbols"] = "[DOC_1],[DOC_12],river,$(";
    INFO("dummy prefix: " << dummy_prefix);
    const Tokenizer tokenizer = tokenizer_of(w, trained_model(settings));
    REQUIRE(tokenizer.user_defined().size() == 4);
    check_same_ids(tokenizer);
    const Json json = *tokenizer_json(tokenizer, true).json;
    std::vector<std::string> found;
    for (const Json& token : json["added_tokens"]) {
      if (token["special"] == false) found.push_back(token["content"]);
    }
    CHECK(found == std::vector<std::string>{"[DOC_1]", "[DOC_12]", "river", "$("});
    const Library library(json);
    for (const std::string text : {"[DOC_12]a", "a[DOC_1]2]", " [DOC_1]", "[DOC_1] [DOC_1]",
                                   "A quiet river's", "riverriver", "$($ (", "[DOC_1"}) {
      INFO(text);
      CHECK(library.encode(text) == tokenizer.encode(text));
    }
    std::vector<int32_t> alone = tokenizer.encode("river");
    if (tokenizer.adds_space()) {
      REQUIRE(alone.size() == 2);
      alone.erase(alone.begin());
    }
    CHECK(library.encode("river") == alone);
  }
}

TEST_CASE("runs of a character may have one score, other pieces may not") {
  const Workplace w;
  const std::string base = trained_model(llama_settings());
  const auto runs = [](size_t longest, float score) {
    std::string pieces, text = "\u2581";
    for (size_t k = 2; k <= longest; ++k) pieces += piece_message(text += "\u2581", score);
    return pieces;
  };
  check_same_ids(tokenizer_of(w, base + runs(2, -1e9f)));
  check_same_ids(tokenizer_of(w, base + runs(7, -1e9f)));
  const auto left_out = [&](const std::string& pieces) {
    return tokenizer_json(tokenizer_of(w, base + pieces), false).left_out;
  };
  const std::string reason = "pieces share a score";
  CHECK(left_out(piece_message("qqq", -1e9f) + piece_message("qq", -1e9f)).empty());
  CHECK(left_out(piece_message("zq", -1e9f)) ==
        "it merges characters that are not in the vocabulary");
  CHECK(left_out(piece_message("qvw", -1e9f) + piece_message("qv", -1e9f)) == reason);
  // Another vocabulary entry contains a run.
  CHECK(left_out(runs(7, -1e9f) + piece_message("\u2581\u2581v", -1e8f)) == reason);
  // Mistral's model has no fifteenth: the sixteenth is merged from fourteen and two.
  check_same_ids(tokenizer_of(
      w, base + runs(3, -1e9f) + piece_message("\u2581\u2581\u2581\u2581\u2581", -1e9f)));
  // Three of a kind, without two of it.
  CHECK(left_out(piece_message("qqq", -1e9f) + piece_message("qqqq", -1e9f)).empty());
}

TEST_CASE("special tokens are those that encode no text, and BOS comes first where it should") {
  const Workplace w;
  const Tokenizer tokenizer = tokenizer_of(w, trained_model(llama_settings()));
  const Json json = *tokenizer_json(tokenizer, true).json;
  std::vector<std::string> special;
  for (const Json& token : json["added_tokens"]) special.push_back(token["content"]);
  CHECK(special == std::vector<std::string>{"<unk>", "<s>", "</s>"});
  CHECK(json["model"]["unk_token"] == "<unk>");
  CHECK(json["model"]["vocab"].size() == 500);
  CHECK(json["post_processor"]["single"] ==
        Json::parse(R"([{"SpecialToken": {"id": "<s>", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}}])"));
  CHECK(json["post_processor"]["special_tokens"]["<s>"]["ids"] == Json::array({1}));
  const Json without = *tokenizer_json(tokenizer, false).json;
  CHECK(without["post_processor"]["single"] ==
        Json::parse(R"([{"Sequence": {"id": "A", "type_id": 0}}])"));
}

TEST_CASE("of a model that the list cannot say there is none, with a reason") {
  const Workplace w;
  const auto left_out = [&](const std::string& setting, const std::string& value) {
    auto settings = llama_settings();
    settings[setting] = value;
    settings["vocab_size"] = "340";  // enough for the sentences with any model type
    const TokenizerJson made = tokenizer_json(tokenizer_of(w, trained_model(settings)), false);
    INFO(setting << " = " << value);
    CHECK_FALSE(made.json);
    return made.left_out;
  };
  for (const auto& [setting, value] :
       {std::pair("byte_fallback", "false"), std::pair("model_type", "unigram"),
        std::pair("normalization_rule_name", "nmt_nfkc"),
        std::pair("remove_extra_whitespaces", "true")}) {
    CHECK(contains(left_out(setting, value), "not a BPE with byte fallback"));
  }
}

TEST_CASE("the piece that fills up rows is the model's own where it has one") {
  const Workplace w;
  auto settings = llama_settings();
  CHECK(tokenizer_of(w, trained_model(settings)).pad() == -1);
  settings["pad_id"] = "3";
  CHECK(tokenizer_of(w, trained_model(settings)).pad() == 3);
}

}  // namespace bamtrain
