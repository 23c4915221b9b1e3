#include "data/huggingface_tokenizer.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json_object.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;

constexpr const char* kTokenizerJsonRemedy =
    "give the tokenizer.json of a byte-level BPE, or tokenize with the library that made this one "
    "and give shards to bamtrain";

std::string type_of(const Json& part) {
  if (part.is_null()) return "null";
  return part.is_object() && part.contains("type") && part["type"].is_string()
             ? part["type"].get<std::string>()
             : abbreviate(part.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// A boolean member; `absent` if it is missing.
bool flag(const Json& object, const char* key, bool absent, const JsonPlace& where) {
  if (!object.contains(key) || object[key].is_null()) return absent;
  if (!object[key].is_boolean()) (where / key).refuse("true or false", type_of(object[key]));
  return object[key].get<bool>();
}

/// `text` as a regular expression that matches it literally.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(R"(\^$.[]|()?*+{}&-#)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

class Reader {
 public:
  Reader(const Json& json, const std::string& where)
      : where_{where, ExitCode::data, kTokenizerJsonRemedy}, file_(json, where_) {}

  BytePairDefinition run() {
    model(file_.object("model"));
    added_tokens();
    normalizer(part("normalizer"), where_ / "normalizer");
    pre_tokenizer(part("pre_tokenizer"), where_ / "pre_tokenizer");
    special_ids();
    return std::move(definition_);
  }

 private:
  const Json& part(const char* key) const {
    static const Json none;
    return file_.has(key) ? file_.value()[key] : none;
  }

  void model(const JsonObject& m) {
    if (m.text("type") != "BPE") (m.where() / "type").refuse("BPE", m.text("type"));
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!m.has(key)) continue;
      const Json& value = m.value()[key];
      const bool none = value.is_null() || value == Json("") || value == Json(0.0);
      if (!none) (m.where() / key).refuse("null", abbreviate(value.dump()));
    }
    if (flag(m.value(), "byte_fallback", false, m.where())) {
      (m.where() / "byte_fallback")
          .refuse("a byte-level BPE",
                  "BPE with byte fallback, as in a SentencePiece model: give its .model file");
    }
    definition_.whole_first = flag(m.value(), "ignore_merges", false, m.where());
    vocabulary(m.object("vocab"));
    merges(m.list("merges"), m.where() / "merges");
  }

  void vocabulary(const JsonObject& vocab) {
    for (const auto& [spelling, id] : vocab.value().items()) {
      const int64_t at = vocab.count(spelling.c_str(), BytePairDefinition::kMostIds - 1);
      BytePairDefinition::Token& t = token_at(&definition_, at);
      if (t.kind != TokenKind::unused) {
        (vocab.where() / spelling).refuse("a unique id", std::to_string(at));
      }
      // A token spelled with other characters is an added token, or merging never produces it.
      std::string bytes;
      const bool of_bytes = bytes_of_spelling(spelling, &bytes) && !bytes.empty();
      t = {of_bytes ? bytes : spelling, of_bytes ? TokenKind::normal : TokenKind::control};
      ids_[spelling] = static_cast<int32_t>(at);
    }
  }

  int32_t id_of(const std::string& spelling, const JsonPlace& where) const {
    const auto found = ids_.find(spelling);
    if (found == ids_.end()) where.refuse("tokens of the vocabulary", spelling);
    return found->second;
  }

  /// A duplicate merge is ambiguous: Hugging Face's library uses its last rank, others the first.
  void merges(const Json& list, const JsonPlace& where) {
    std::set<std::pair<std::string, std::string>> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonPlace here = where / std::to_string(i);
      const auto [left, right] = pair(list[i], here);
      if (!seen.emplace(left, right).second) {
        here.refuse("each merge once", "\"" + left + " " + right + "\" twice");
      }
      definition_.merges.push_back({id_of(left, here), id_of(right, here),
                                    id_of(left + right, here), static_cast<int32_t>(i)});
    }
  }

  /// ["a", "b"], or "a b" in files of older versions.
  static std::pair<std::string, std::string> pair(const Json& merge, const JsonPlace& where) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    where.refuse("a pair of tokens", abbreviate(merge.dump()));
  }

  void added_tokens() {
    if (!file_.has("added_tokens") || part("added_tokens").is_null()) return;
    const Json& list = file_.list("added_tokens");
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonObject a(list[i], where_ / "added_tokens" / std::to_string(i));
      const std::string content = a.text("content");
      const auto id = static_cast<int32_t>(a.count("id", BytePairDefinition::kMostIds - 1));
      BytePairDefinition::Token& t = token_at(&definition_, id);
      require_one_id(content, id, t, a.where());
      if (flag(a.value(), "special", false, a.where())) {
        t = {content, TokenKind::control};
        continue;
      }
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (!flag(a.value(), key, false, a.where())) continue;
        (a.where() / key).refuse("false, since " + content + " is not special", "true");
      }
      if (content.empty()) (a.where() / "content").refuse("a text", "an empty one");
      // A token that is also in the vocabulary can still be merged.
      if (t.kind != TokenKind::normal || t.bytes != content) t = {content, TokenKind::normal, true};
      definition_.added.push_back({content, id, flag(a.value(), "normalized", true, a.where())});
    }
  }

  /// Refuses two tokens with one id, and one token with two ids: the library then assigns an id of
  /// its own choice.
  void require_one_id(const std::string& content, int32_t id, const BytePairDefinition::Token& now,
                      const JsonPlace& where) {
    const auto [known, is_new] = ids_.emplace(content, id);
    if (known->second != id) {
      (where / "id")
          .refuse("the id " + std::to_string(known->second) + " that " + content + " has",
                  std::to_string(id));
    }
    const bool taken = is_new && now.kind != TokenKind::unused && now.bytes != content;
    if (taken)
      (where / "id").refuse("a unique id", std::to_string(id) + ", the id of " + now.bytes);
  }

  void normalizer(const Json& n, const JsonPlace& where) {
    if (n.is_null()) return;
    const std::string type = type_of(n);
    if (type == "NFC") {
      definition_.composes = true;
    } else if (type == "Sequence") {
      for (const Json& each : JsonObject(n, where).list("normalizers")) normalizer(each, where);
    } else {
      where.refuse("NFC or no normalizer", type);
    }
  }

  void pre_tokenizer(const Json& p, const JsonPlace& where) {
    if (type_of(p) != "Sequence") {
      byte_level(p, where);
      return;
    }
    const Json& parts = JsonObject(p, where).list("pretokenizers");
    for (size_t i = 0; i < parts.size(); ++i) {
      const JsonPlace here = where / std::to_string(i);
      if (i + 1 == parts.size()) {
        byte_level(parts[i], here);
      } else if (type_of(parts[i]) == "Split") {
        split(JsonObject(parts[i], here));
      } else if (type_of(parts[i]) == "Digits") {
        const bool each = flag(parts[i], "individual_digits", false, here);
        definition_.patterns.push_back(each ? R"(\p{N})" : R"(\p{N}+)");
      } else {
        here.refuse("Split or Digits, with ByteLevel as the last", type_of(parts[i]));
      }
    }
    if (parts.empty()) where.refuse("ByteLevel", "an empty list");
  }

  void byte_level(const Json& p, const JsonPlace& where) {
    if (type_of(p) != "ByteLevel") where.refuse("ByteLevel", type_of(p));
    definition_.prefix_space = flag(p, "add_prefix_space", true, where);
    if (definition_.prefix_space && !definition_.patterns.empty()) {
      (where / "add_prefix_space").refuse("false after a Split or Digits", "true");
    }
    if (flag(p, "use_regex", true, where)) definition_.patterns.push_back(kGpt2Pattern);
  }

  void split(const JsonObject& s) {
    const std::string behavior = s.text("behavior");
    if (behavior != "Isolated") (s.where() / "behavior").refuse("Isolated", behavior);
    if (flag(s.value(), "invert", false, s.where())) {
      (s.where() / "invert").refuse("false", "true");
    }
    const JsonObject pattern = s.object("pattern");
    if (pattern.has("String") && pattern.text("String").empty()) {
      (pattern.where() / "String").refuse("a text", "an empty one");
    }
    if (pattern.has("Regex")) {
      definition_.patterns.push_back(pattern.text("Regex"));
    } else if (pattern.has("String")) {
      definition_.patterns.push_back(quoted(pattern.text("String")));
    } else {
      pattern.where().refuse("Regex or String", abbreviate(pattern.value().dump()));
    }
  }

  /// The token that the template puts before a text.
  std::optional<std::string> first_of_template(const Json& p) const {
    const std::string type = type_of(p);
    if (type == "Sequence" && p.contains("processors") && p["processors"].is_array()) {
      for (const Json& each : p["processors"]) {
        if (auto found = first_of_template(each)) return found;
      }
    }
    if (type != "TemplateProcessing") return std::nullopt;
    const JsonObject t(p, where_ / "post_processor");
    const Json& single = t.list("single");
    if (single.empty() || !single[0].is_object() || !single[0].contains("SpecialToken")) {
      return std::nullopt;
    }
    return JsonObject(single[0], t.where() / "single").object("SpecialToken").text("id");
  }

  void special_ids() {
    BytePairDefinition& d = definition_;
    if (const auto name = first_of_template(part("post_processor"))) {
      d.bos = control_token(d, {*name});
      if (d.bos < 0) (where_ / "post_processor").refuse("a special token", *name);
    } else {
      d.bos = control_token(
          d, {"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>", "<|endoftext|>"});
    }
    d.eos = control_token(d, {"<|end_of_text|>", "</s>", "<eos>", "<|endoftext|>"});
    d.pad = control_token(d, {"<pad>", "[PAD]", "<|pad|>"});
  }

  JsonPlace where_;
  JsonObject file_;
  BytePairDefinition definition_;
  std::unordered_map<std::string, int32_t> ids_;  // by spelling
};

}  // namespace

BytePairDefinition read_huggingface_tokenizer(const Json& json, const std::string& where) {
  return Reader(json, where).run();
}

}  // namespace bamtrain
