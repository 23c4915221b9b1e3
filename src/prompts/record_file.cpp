#include "prompts/record_file.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/line_reader.h"
#include "core/text_file.h"

namespace bamtrain {

using nlohmann::json;

namespace {

constexpr const char* kRemedy = "correct the line, or remove it";

}  // namespace

std::string read_records(const std::string& path, int64_t most,
                         const std::function<void(const JsonObject&, int64_t)>& take) {
  require(most >= 1, "a record at least");
  const InputFile file = open_text_file(path, "check the path and its permissions");
  LineReader reader(file);
  int64_t line = 0, records = 0;
  const auto read = [&](std::string_view text) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const json object = parse_json_line(text, {path, ExitCode::data, kRemedy, line});
    take(JsonObject(object, {fmt::format("{}:{}", path, line), ExitCode::data, kRemedy}), line);
    ++records;
  };
  std::string_view text;
  while (records < most && reader.next(&text)) read(text);
  const int64_t rest = file.bytes() - reader.offset();
  if (records < most && rest > 0) {  // the last line may lack its newline
    std::string last(static_cast<size_t>(rest), '\0');
    file.read(reader.offset(), last.data(), rest);
    read(last);
  }
  if (records == 0) {
    throw Error::fault(ExitCode::data, path, "no JSON objects, one a line",
                       "see bamtrain help downstream");
  }
  return file.sha256();
}

std::vector<std::string> texts_of(const JsonObject& record, const char* key) {
  const json& list = record.list(key);
  std::vector<std::string> texts;
  for (const json& text : list) {
    if (!text.is_string()) (record.where() / key).refuse("a list of texts", list.dump());
    texts.push_back(text);
  }
  if (texts.empty()) (record.where() / key).refuse("a list of at least one text", "an empty list");
  return texts;
}

size_t index_of(const JsonObject& record, const char* key, size_t count) {
  const auto it = record.value().find(key);
  const std::string expected = fmt::format("an integer from 0 to {}", count - 1);
  if (it == record.value().end()) (record.where() / key).refuse(expected, "no such member");
  const std::string text = it->is_string() ? it->get<std::string>() : it->dump();
  size_t index = count;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index >= count) {
    (record.where() / key).refuse(expected, it->dump());
  }
  return index;
}

}  // namespace bamtrain
