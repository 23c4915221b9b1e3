#include "run/init_from_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/part.h"
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

constexpr int64_t kMaxTokenizerConfig = 64 << 20;

bool is_tokenizer_file(const fs::path& path) {
  static constexpr std::array kNames = {"tokenizer.json", "tekken.json"};
  const std::string ending = path.extension().string();
  return std::find(kNames.begin(), kNames.end(), path.filename()) != kNames.end() ||
         ending == ".model" || ending == ".tiktoken";
}

/// Of the file that an export's tokenizer.json was made from, which has other bytes; "": not said.
std::string exported_sha256(const std::string& path) {
  const json config =
      parse_json(InputFile(path, ExitCode::checkpoint, kDamagedRemedy).text(kMaxTokenizerConfig),
                 {path, ExitCode::checkpoint, kDamagedRemedy});
  const json found = config.is_object() ? config.value(kTokenizerSha256, json()) : json();
  return found.is_string() ? found.get<std::string>() : "";
}

/// The SHA-256 that stand for the folder's tokenizer.
std::set<std::string> tokenizers_in(const std::string& folder) {
  std::set<std::string> found;
  if (const json state = source_state(folder); state.is_object()) {
    const json* const sha256 = find_value(state, "data.tokenizer_sha256");
    if (sha256 != nullptr && sha256->is_string()) found.insert(sha256->get<std::string>());
    return found;
  }
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    if (!it->is_regular_file(ignored)) continue;
    if (is_tokenizer_file(it->path())) found.insert(sha256_file(it->path().string()));
    if (it->path().filename() == "tokenizer_config.json") {
      found.insert(exported_sha256(it->path().string()));
    }
  }
  found.erase("");
  return found;
}

}  // namespace

void check_init_from_tokenizer(const RunConfig& c, const Warn& warn) {
  if (c.init_from.folder.empty() || c.init_from.any_tokenizer) return;
  const std::string ours = training_tokenizer_sha256(c);
  if (ours.empty()) return;
  const std::string& folder = c.init_from.folder;
  const std::set<std::string> theirs = tokenizers_in(folder);
  if (theirs.empty()) {
    warn(folder +
         ": tells no tokenizer: whether the ids of data.train mean the same to these "
         "weights is not compared");
    return;
  }
  if (theirs.count(ours) != 0) return;
  throw Error(ExitCode::data, "data.train",
              "shards of the tokenizer of " + folder + " (sha256 " +
                  join({theirs.begin(), theirs.end()}, " or ") + ")",
              "shards of another (sha256 " + ours + ")",
              "tokenize the text with that tokenizer, or set init_from.tokenizer to \"any\" where "
              "ids are the same or are to be learned anew");
}

}  // namespace bamtrain
