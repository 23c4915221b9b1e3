#include "data_tools/document_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"
#include "core/utf8.h"
#include "data_tools/json_string.h"

namespace bamtrain {
namespace {

constexpr const char* kRepair = "repair or remove the line";

Error bad_line(const std::string& path, int64_t line, const std::string& expected,
               const std::string& found, const std::string& remedy) {
  return Error(ExitCode::data, path + ":" + std::to_string(line), expected, found, remedy);
}

Error bad_utf8(const RawDocument& raw, const std::string& path, DocumentKind kind, size_t at) {
  const auto begin = raw.text.begin();
  const auto line = raw.line + std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n');
  static const char* digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(raw.text[at]);
  const bool row = kind == DocumentKind::row;
  return bad_line(row ? path + ": row" : path, row ? raw.line : line, "text in UTF-8",
                  std::string("the byte 0x") + digits[byte >> 4] + digits[byte & 15] +
                      " at offset " + std::to_string(raw.offset + static_cast<int64_t>(at)),
                  "convert the file to UTF-8, or choose --invalid-utf8 replace or skip");
}

nlohmann::json parsed(const RawDocument& raw, const std::string& path) {
  return parse_json(raw.text, {path, ExitCode::data, kRepair, raw.line});
}

/// Takes the text of `raw` where all is as it should be.
std::string json_field(RawDocument& raw, const std::string& path, const std::string& field) {
  if (std::optional<std::string> text = take_json_string(&raw.text, field)) return *std::move(text);
  nlohmann::json object = parsed(raw, path);
  if (!object.is_object()) {
    throw bad_line(path, raw.line, "a JSON object",
                   std::string("JSON of type ") + object.type_name(), kRepair);
  }
  const auto it = object.find(field);
  if (it == object.end()) {
    std::string names;
    for (const auto& item : object.items()) names += (names.empty() ? "" : ", ") + item.key();
    throw bad_line(path, raw.line, "a field \"" + field + "\"",
                   names.empty() ? "no field" : "only " + abbreviate(names, 240),
                   "name the right one by --field");
  }
  if (!it->is_string()) {
    throw bad_line(path, raw.line, "a string in the field \"" + field + "\"",
                   std::string("a value of type ") + it->type_name(),
                   "name another field by --field, or remove the line");
  }
  return std::move(it->get_ref<std::string&>());
}

/// CRLF to newline; a carriage return at the end is what a newline was taken from.
std::string with_newlines(std::string text) {
  size_t kept = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] == '\n')) continue;
    text[kept++] = text[at];
  }
  text.resize(kept);
  return text;
}

}  // namespace

bool document_text(RawDocument raw, const std::string& path, DocumentKind kind,
                   const std::string& field, InvalidUtf8 invalid, std::string* text,
                   TextCounts* counts) {
  const size_t bad = first_invalid_utf8(raw.text);
  if (bad != std::string_view::npos) {
    if (invalid == InvalidUtf8::error) throw bad_utf8(raw, path, kind, bad);
    if (invalid == InvalidUtf8::skip) {
      ++counts->skipped;
      return false;
    }
    raw.text = replace_invalid_utf8(raw.text);
    ++counts->replaced;
  }
  if (kind == DocumentKind::jsonl) {
    *text = json_field(raw, path, field);
  } else {
    *text = kind == DocumentKind::row ? std::move(raw.text) : with_newlines(std::move(raw.text));
  }
  if (!is_blank(*text)) return true;
  ++counts->empty;
  return false;
}

}  // namespace bamtrain
