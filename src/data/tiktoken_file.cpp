#include "data/tiktoken_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/json_object.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

constexpr const char* kDamaged = "give the tokenizer's own file, undamaged";

constexpr const char* kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Special {
  const char* name;
  int32_t id;
};

struct Encoding {
  const char* name;
  const char* sha256;  // of the file
  const char* pattern;
  std::span<const Special> special;
  int32_t vocab;
};

constexpr Special kOfR50k[] = {{"<|endoftext|>", 50256}};
constexpr Special kOfCl100k[] = {{"<|endoftext|>", 100257},
                                 {"<|fim_prefix|>", 100258},
                                 {"<|fim_middle|>", 100259},
                                 {"<|fim_suffix|>", 100260},
                                 {"<|endofprompt|>", 100276}};
constexpr Special kOfO200k[] = {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
// The other special tokens are for chats, or reserved.
constexpr Special kOfLlama3[] = {{"<|begin_of_text|>", 128000}, {"<|end_of_text|>", 128001}};

constexpr Encoding kEncodings[] = {
    {"r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", kGpt2Pattern,
     kOfR50k, 50257},
    {"p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", kGpt2Pattern,
     kOfR50k, 50281},
    {"cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", kCl100k,
     kOfCl100k, 100277},
    {"o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", kO200k,
     kOfO200k, 200019},
    {"Llama 3's tokenizer.model",
     "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55", kCl100k, kOfLlama3,
     128256},
};

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  if (n < 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(n));
  for (size_t padding = 0; padding < 2 && text[text.size() - 1 - padding] == '='; ++padding) {
    bytes.pop_back();
  }
  return bytes;
}

struct RankLine {
  std::string bytes;
  int64_t rank;
};

std::optional<RankLine> parse_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto bytes = from_base64(line.substr(0, space));
  int64_t rank = -1;
  const auto [end, error] =
      std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
  if (!bytes || bytes->empty() || error != std::errc() || end != line.data() + line.size() ||
      rank < 0 || rank >= BytePairDefinition::kMostIds) {
    return std::nullopt;
  }
  return RankLine{*bytes, rank};
}

/// Turns CRLF line ends, of a checkout on Windows, into newlines as published.
std::string without_carriage_returns(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i];
  }
  return out;
}

void finish(BytePairDefinition* d, const std::string& pattern) {
  d->patterns = {pattern};
  d->whole_first = true;
  d->merges = merges_by_rank(d->tokens);
  d->bos = control_token(*d, {"<|begin_of_text|>", "<s>", "<|endoftext|>"});
  d->eos = control_token(*d, {"<|end_of_text|>", "</s>", "<|endoftext|>"});
  d->pad = control_token(*d, {"<pad>"});
}

}  // namespace

bool begins_like_ranks(std::string_view bytes) {
  std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return parse_line(line).has_value();
}

BytePairDefinition read_tiktoken_file(std::string_view file, const std::string& where) {
  const std::string with_newlines = without_carriage_returns(file);
  std::string_view bytes = with_newlines;
  const std::string sha256 = sha256_hex(bytes);
  const auto known = std::find_if(std::begin(kEncodings), std::end(kEncodings),
                                  [&](const Encoding& e) { return sha256 == e.sha256; });
  if (known == std::end(kEncodings)) {
    std::string names;
    for (const Encoding& e : kEncodings) names += std::string(names.empty() ? "" : ", ") + e.name;
    throw Error(ExitCode::data, where, "the published ranks of " + names,
                "other ranks, SHA-256 " + sha256,
                "give the tokenizer.json of this tokenizer, which has its pattern");
  }
  BytePairDefinition d;
  d.tokens.resize(static_cast<size_t>(known->vocab));
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const auto line = parse_line(bytes.substr(0, end));
    require(line.has_value(), "lines of base64 and a rank in a file of this hash");
    token_at(&d, line->rank) = {line->bytes, TokenKind::normal};
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  for (const Special& s : known->special) token_at(&d, s.id) = {s.name, TokenKind::control};
  finish(&d, known->pattern);
  return d;
}

BytePairDefinition read_tekken(const nlohmann::json& json, const std::string& where) {
  const JsonObject file(json, {where, ExitCode::data, kDamaged});
  const JsonObject config = file.object("config");
  const int64_t vocab = config.count("default_vocab_size", BytePairDefinition::kMostIds);
  const int64_t special = config.count("default_num_special_tokens", BytePairDefinition::kMostIds);
  const nlohmann::json& list = file.list("vocab");
  if (special < 3 || special >= vocab) {
    (config.where() / "default_num_special_tokens")
        .refuse("a number from 3 to below default_vocab_size", std::to_string(special));
  }
  const auto ranks = static_cast<size_t>(vocab - special);
  if (list.size() < ranks) {
    (file.where() / "vocab").refuse(std::to_string(ranks) + " tokens", std::to_string(list.size()));
  }
  BytePairDefinition d;
  d.tokens.resize(static_cast<size_t>(vocab));
  for (int64_t id = 0; id < special; ++id) {
    token_at(&d, id) = {"<SPECIAL_" + std::to_string(id) + ">", TokenKind::control};
  }
  // Defaults for files without special tokens.
  constexpr const char* kFirst[] = {"<unk>", "<s>", "</s>"};
  for (int64_t id = 0; id < 3; ++id) token_at(&d, id).bytes = kFirst[id];
  if (file.has("special_tokens") && !file.value()["special_tokens"].is_null()) {
    for (const nlohmann::json& each : file.list("special_tokens")) {
      const JsonObject s(each, file.where() / "special_tokens");
      token_at(&d, s.count("rank", special - 1)).bytes = s.text("token_str");
    }
  }
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < ranks; ++i) {
    const JsonObject entry(list[i], file.where() / "vocab" / std::to_string(i));
    const auto bytes = from_base64(entry.text("token_bytes"));
    if (!bytes || bytes->empty()) entry.where().refuse("bytes in base64", "other text");
    if (!seen.insert(*bytes).second) {
      entry.where().refuse("unique bytes", entry.text("token_bytes") + " twice");
    }
    if (entry.count("rank") != static_cast<int64_t>(i)) {
      entry.where().refuse("rank " + std::to_string(i), std::to_string(entry.count("rank")));
    }
    token_at(&d, special + static_cast<int64_t>(i)) = {*bytes, TokenKind::normal};
  }
  finish(&d, config.text("pattern"));
  return d;
}

}  // namespace bamtrain
