#include "run/init_from_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/join.h"
#include "core/json.h"
#include "core/sha256.h"
#include "record/run_text.h"
#include "run/init_from_model_type.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxTokenizerConfig = 64 << 20, kMaxTokenizerJson = 256 << 20,
                  kMaxCard = 64 << 20;

std::string text_in(const std::string& path, int64_t most) {
  return InputFile(path, ExitCode::checkpoint, kDamagedRemedy).text(most);
}

json json_in(const std::string& path, int64_t most) {
  return parse_json(text_in(path, most), {path, ExitCode::checkpoint, kDamagedRemedy});
}

bool is_tokenizer_file(const fs::path& path) {
  static constexpr std::array kNames = {"tokenizer.json", "tekken.json"};
  const std::string ending = path.extension().string();
  return std::find(kNames.begin(), kNames.end(), path.filename()) != kNames.end() ||
         ending == ".model" || ending == ".tiktoken";
}

/// SHA-256 of the file that an export's tokenizer.json was made from, whose bytes differ; "" if
/// missing.
std::string exported_sha256(const json& tokenizer_config) {
  const json found =
      tokenizer_config.is_object() ? tokenizer_config.value(kTokenizerSha256, json()) : json();
  return found.is_string() ? found.get<std::string>() : "";
}

/// Whether bamtrain's export wrote this tokenizer_config.json, judged by members that every version
/// writes. Then tokenizer.json was rewritten, and its digest is not that of the shards.
bool is_of_export(const json& tokenizer_config) {
  static const json kWritten = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                {"add_eos_token", false},
                                {"clean_up_tokenization_spaces", false},
                                {"split_special_tokens", true},
                                {"padding_side", "left"}};
  if (!tokenizer_config.is_object()) return false;
  for (const auto& [member, value] : kWritten.items()) {
    if (tokenizer_config.value(member, json()) != value) return false;
  }
  return true;
}

/// SHA-256 of the tokenizer's file in the model card of an export; "" if missing.
std::string card_sha256(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  const std::string card = text_in(path, kMaxCard), mark = "SHA-256 `";
  const size_t row = card.find("| tokenizer | ");
  if (row == std::string::npos) return "";
  const std::string line = card.substr(row, card.find('\n', row) - row);
  const size_t at = line.find(mark);
  if (at == std::string::npos) return "";
  const std::string found = line.substr(at + mark.size(), 64);
  const bool is_digest =
      found.size() == 64 && found.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_digest ? found : "";
}

/// One more than the highest id in an export's tokenizer.json; 0 if it has no ids.
int64_t ids_in(const std::string& path) {
  const json tokenizer = json_in(path, kMaxTokenizerJson);
  const json* const vocab = find_value(tokenizer, "model.vocab");
  int64_t ids = 0;
  if (vocab == nullptr || !vocab->is_object()) return ids;
  for (const auto& [piece, id] : vocab->items()) {
    const bool fits = id.is_number_integer() && id >= 0 && id < INT32_MAX;
    if (fits) ids = std::max(ids, id.get<int64_t>() + 1);
  }
  return ids;
}

/// What a folder says about its tokenizer.
struct FolderTokenizer {
  std::set<std::string> sha256;  // digests that identify it
  bool tells = false;            // false: other digests are possible
  int64_t ids = 0;               // number of ids if `tells` is false; 0: unknown
};

FolderTokenizer tokenizer_in(const std::string& folder) {
  FolderTokenizer found;
  const auto tell = [&found](const std::string& sha256) {
    if (sha256.empty()) return;
    found.sha256.insert(sha256);
    found.tells = true;
  };
  if (const json state = source_state(folder); state.is_object()) {
    const json* const sha256 = find_value(state, "data.tokenizer_sha256");
    if (sha256 != nullptr && sha256->is_string()) tell(sha256->get<std::string>());
    return found;
  }
  std::error_code ignored;
  json config;
  if (const std::string path = folder + "/tokenizer_config.json";
      fs::is_regular_file(path, ignored)) {
    config = json_in(path, kMaxTokenizerConfig);
  }
  tell(exported_sha256(config));
  const bool is_rewritten = is_of_export(config);
  if (is_rewritten) tell(card_sha256(folder + "/README.md"));
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    if (!it->is_regular_file(ignored) || !is_tokenizer_file(it->path())) continue;
    const std::string path = it->path().string(), sha256 = sha256_file(path);
    if (is_rewritten && it->path().filename() == "tokenizer.json") {
      found.sha256.insert(sha256);
      found.ids = ids_in(path);
    } else {
      tell(sha256);
    }
  }
  return found;
}

[[noreturn]] void refuse_shards(const std::string& expected, const std::string& found) {
  throw Error(ExitCode::data, "data.train", expected, found,
              "tokenize the text with that tokenizer, or set init_from.tokenizer to \"any\" if the "
              "ids are the same or are to be learned again");
}

}  // namespace

void check_init_from_tokenizer(const RunConfig& c, const Warn& warn) {
  if (c.init_from.folder.empty() || c.init_from.any_tokenizer) return;
  const std::optional<Manifest> ours = training_manifest(c);
  if (!ours) return;
  const std::string& folder = c.init_from.folder;
  const FolderTokenizer theirs = tokenizer_in(folder);
  if (theirs.sha256.count(ours->tokenizer_sha256) != 0) return;
  const std::string expected = "shards of the tokenizer of " + folder;
  if (theirs.tells) {
    refuse_shards(
        expected + " (sha256 " + join({theirs.sha256.begin(), theirs.sha256.end()}, " or ") + ")",
        "shards of another (sha256 " + ours->tokenizer_sha256 + ")");
  }
  if (theirs.ids > 0 && theirs.ids != ours->vocab) {
    refuse_shards(expected + ", which has " + std::to_string(theirs.ids) + " ids",
                  "shards of one with " + std::to_string(ours->vocab));
  }
  warn(folder + ": names no " + (theirs.ids > 0 ? "SHA-256 of its tokenizer" : "tokenizer") +
       ", so the token ids of data.train are not checked against these weights");
}

}  // namespace bamtrain
