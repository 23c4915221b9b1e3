#include "commands/eval_result.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "checkpoint/manifest.h"
#include "commands/beginning.h"
#include "config/schema.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json_digest.h"
#include "core/utf8.h"

namespace bamtrain {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json checkpoint_facts(const Checkpoint& checkpoint, const RunConfig& config) {
  return {
      {"checkpoint", replace_invalid_utf8(checkpoint.folder)},
      {"name", config.name},
      {"step", checkpoint.step},
      {"weights",
       checkpoint_files::verify_manifest(checkpoint.folder).at(checkpoint_files::kModel).sha256},
      {"attention", resolved_json(config)["model"]["attention"]}};
}

namespace {

/// Whether a line starts with the members of a prompt: "task", a string, then "length" or "input".
bool is_prompt(std::string_view line) {
  constexpr std::string_view kTask = R"({"task":")";
  if (!line.starts_with(kTask)) return false;
  line.remove_prefix(kTask.size());
  size_t end = 0;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  if (end >= line.size()) return false;
  line.remove_prefix(end);
  return line.starts_with(R"(","length":)") || line.starts_with(R"(","input":)");
}

/// Whether a file's beginning is that of a result (its first member is the checkpoint's path), of
/// answers to requests, or of prompts from --write-prompts. Configurations and states have a
/// section named "checkpoint".
bool is_result(std::string_view beginning) {
  std::string text;  // without white space
  for (const char c : beginning) {
    if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) text += c;
  }
  return text.empty() || text.starts_with(R"({"checkpoint":")") ||
         text.starts_with(R"({"logprob":)") || is_prompt(text);
}

}  // namespace

void check_output(const std::string& path, const char* option) {
  if (path.empty()) return;
  const AtomicFile tried(path);  // never committed
  constexpr int64_t kBeginning = 4096;
  if (is_result(beginning_of(path, kBeginning))) return;
  throw Error::fault(ExitCode::usage, option, path + " exists and is not a result of bamtrain eval",
                     "choose another name, or remove the file");
}

void write_result(const std::string& path, const ordered_json& result) {
  if (!path.empty()) write_output(path, digested_json(result));
}

void write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  AtomicFile output(path);
  output.write(text);
  output.commit();
}

bool is_row_length(const ordered_json& value) {
  constexpr uint64_t kMostLength = uint64_t{1} << 40;
  return value.is_number_unsigned() && value.get<uint64_t>() <= kMostLength;
}

std::vector<ordered_json> rows_before(const std::string& path, const ordered_json& result,
                                      const std::vector<std::string>& derived) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return {};
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  const JsonSource source = {path, ExitCode::io,
                             "all lengths are measured again, and the file is replaced"};
  try {
    const std::string text = InputFile(path, source.code, source.remedy).text(kMostBytes);
    const ordered_json before = parse_digested_json(text, source);
    const auto scores = before.find("scores");
    if (scores == before.end()) return {};
    json then = before, now = result;
    for (const std::string& key : derived) then.erase(key);
    for (json* const all : {&then, &now}) all->erase("checkpoint");  // identified by its weights
    if (then != now) return {};
    return std::vector<ordered_json>(scores->begin(), scores->end());
  } catch (const Error& e) {
    constexpr int64_t kFirstMember = 32;
    if (beginning_of(path, kFirstMember).find("\"checkpoint\"") == std::string::npos) return {};
    std::fputs(fmt::format("warning: {}\n", printable(e.what())).c_str(), stderr);
    return {};
  }
}

}  // namespace bamtrain
