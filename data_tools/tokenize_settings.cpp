#include "data_tools/tokenize_settings.h"

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/sha256.h"
#include "core/utf8.h"

namespace bamtrain {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::optional<struct stat> file_at(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

const char* name_of(InvalidUtf8 invalid) {
  return invalid == InvalidUtf8::replace ? "replace"
         : invalid == InvalidUtf8::skip  ? "skip"
                                         : "error";
}

}  // namespace

OrderedJson settings_of(const TokenizeOptions& options, const Tokenizer& tokenizer) {
  OrderedJson s;
  const ValidationShare& v = options.validation;
  s["--tokenizer"] = "SHA-256 " + tokenizer.sha256();
  s[kTokenizerName] = std::filesystem::path(tokenizer.path()).filename().string();
  s["--shard-tokens"] = options.shard_tokens;
  s["--eos"] = options.eos;
  s["--val-documents"] = v.documents;
  s["--val-fraction"] = v.fraction;
  s["--val-tokens"] = v.tokens;
  s["--unused-tokens"] = v.unused;
  s["--shuffle"] = options.shuffle ? OrderedJson(*options.shuffle) : OrderedJson(nullptr);
  s["--format"] = options.input.format;
  s["--document"] =
      options.input.kind
          ? OrderedJson(document_kind_names()[static_cast<size_t>(*options.input.kind)])
          : OrderedJson(nullptr);
  s["--field"] = replace_invalid_utf8(options.input.field);
  s["--invalid-utf8"] = name_of(options.input.invalid_utf8);
  return s;
}

bool add_inputs(const std::vector<std::string>& paths, OrderedJson* settings) {
  (*settings)["inputs"] = paths.size();
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto info = file_at(paths[i]);
    if (!info) return false;
    (*settings)["input " + std::to_string(i + 1)] =
        replace_invalid_utf8(paths[i]) + ", " + std::to_string(info->st_size) + " bytes, of " +
        std::to_string(info->st_mtim.tv_sec) + "." + std::to_string(info->st_mtim.tv_nsec);
  }
  return true;
}

std::vector<std::string> inputs_of_part(const std::vector<std::string>& paths,
                                        const InputPart& part) {
  std::vector<int64_t> middles;  // doubled, to avoid half bytes
  int64_t total = 0;
  for (const std::string& path : paths) {
    const auto info = file_at(path);
    if (!info) {
      throw Error::fault(ExitCode::usage, "--part",
                         path + " is not a regular file: parts are cut by file sizes",
                         "give files, or leave --part out");
    }
    middles.push_back(2 * total + info->st_size);
    total += info->st_size;
  }
  std::vector<std::vector<std::string>> parts(static_cast<size_t>(part.of));
  for (size_t i = 0; i < paths.size(); ++i) {
    const double share = static_cast<double>(middles[i]) / (2 * static_cast<double>(total));
    const auto at = total > 0 ? static_cast<int64_t>(share * static_cast<double>(part.of)) : 0;
    parts[static_cast<size_t>(std::min(at, part.of - 1))].push_back(paths[i]);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty()) continue;
    throw Error::fault(ExitCode::usage, "--part",
                       "no file in part " + std::to_string(i + 1) + " of " +
                           std::to_string(part.of) +
                           ": parts are whole files, in order and of about equal size",
                       "ask for fewer parts, or split the largest files");
  }
  return parts[static_cast<size_t>(part.number - 1)];
}

std::string digest_of_inputs(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    const auto info = file_at(path);
    require(info.has_value(), "a file");
    text += std::filesystem::path(path).filename().string() + '\0' + std::to_string(info->st_size) +
            '\n';
  }
  return sha256_hex(text);
}

}  // namespace bamtrain
