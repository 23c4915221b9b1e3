#include "prompts/prompt_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr int64_t kMostPromptFileBytes = int64_t{4} << 30;

bool is_text(const json& v) { return v.is_string(); }
/// An empty text asks nothing, and matches every answer.
bool is_filled_text(const json& v) {
  return is_text(v) && !v.get_ref<const std::string&>().empty();
}

bool is_prompt(const json& v) {
  return v.is_object() && v.contains("input") && is_filled_text(v["input"]) &&
         v.contains("outputs") && v["outputs"].is_array() && !v["outputs"].empty() &&
         std::all_of(v["outputs"].begin(), v["outputs"].end(), is_filled_text) &&
         (!v.contains("answer_prefix") || is_text(v["answer_prefix"]));
}

}  // namespace

std::vector<TextPrompt> read_prompts(const std::string& path, int64_t tokens_to_generate) {
  const std::string text =
      open_text_file(path, "check the path and its permissions").text(kMostPromptFileBytes);
  std::vector<TextPrompt> prompts;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json v =
        parse_json_line(line, {path, ExitCode::data, "correct the line, or remove it", number});
    if (!is_prompt(v)) {
      throw Error(ExitCode::data, fmt::format("{}:{}", path, number),
                  "{\"input\": TEXT, \"outputs\": [TEXT, ...]} without empty texts",
                  abbreviate(v.dump()), "write it with RULER's prepare.py, or remove the line");
    }
    TextPrompt p;
    p.text = v["input"].get<std::string>() + v.value("answer_prefix", "");
    p.outputs = v["outputs"].get<std::vector<std::string>>();
    p.tokens_to_generate = tokens_to_generate;
    prompts.push_back(std::move(p));
  }
  if (prompts.empty()) {
    throw Error::fault(ExitCode::data, path, "no prompts", "name another file");
  }
  return prompts;
}

}  // namespace bamtrain
