#include "data_tools/document_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/json.h"
#include "core/utf8.h"
#include "data_tools/json_extensions.h"
#include "data_tools/json_string.h"

namespace bamtrain {
namespace {

constexpr const char* kRepair = "repair or remove the line";

Error bad_line(const std::string& path, int64_t line, const std::string& expected,
               const std::string& found, const std::string& remedy) {
  return Error(ExitCode::data, path + ":" + std::to_string(line), expected, found, remedy);
}

/// "path:line" of the byte raw.text[at]; for a row, "path: row:number".
std::string place_of_byte(const RawDocument& raw, const std::string& path, DocumentKind kind,
                          size_t at) {
  if (kind == DocumentKind::row) return path + ": row:" + std::to_string(raw.line);
  const auto begin = raw.text.begin();
  const auto line = raw.line + std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n');
  return path + ":" + std::to_string(line);
}

std::string offset_of_byte(const RawDocument& raw, size_t at) {
  return "offset " + std::to_string(raw.offset + static_cast<int64_t>(at));
}

Error bad_utf8(const RawDocument& raw, const std::string& path, DocumentKind kind, size_t at) {
  static const char* digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(raw.text[at]);
  return Error::fault(ExitCode::data, place_of_byte(raw, path, kind, at),
                      std::string("not valid UTF-8: byte 0x") + digits[byte >> 4] +
                          digits[byte & 15] + " at " + offset_of_byte(raw, at),
                      "convert the file to UTF-8, or choose --invalid-utf8 replace or skip");
}

/// Throws Error for a NUL byte. Text has none; binary files and UTF-16 usually have one within the
/// first few bytes.
void refuse_nul(const RawDocument& raw, const std::string& path, DocumentKind kind) {
  const size_t at = raw.text.find('\0');
  if (at == std::string::npos) return;
  throw Error::fault(ExitCode::data, place_of_byte(raw, path, kind, at),
                     "not text: NUL byte at " + offset_of_byte(raw, at),
                     "`file` may tell the format; tr -d '\\000' removes NUL bytes");
}

/// Bytes of `text` in invalid sequences; the first one is at `at`.
int64_t invalid_bytes_from(std::string_view text, size_t at) {
  int64_t bytes = 0;
  for (text.remove_prefix(at);; text.remove_prefix(at)) {
    const size_t n = utf8_character_at(text, 0).bytes;
    bytes += static_cast<int64_t>(n);
    text.remove_prefix(n);
    at = first_invalid_utf8(text);
    if (at == std::string_view::npos) return bytes;
  }
}

/// Counts an invalid document; returns whether it is kept, to be repaired. REQUIRES: not
/// InvalidUtf8::error.
bool keeps_invalid(InvalidUtf8 invalid, TextCounts* counts) {
  ++(invalid == InvalidUtf8::skip ? counts->skipped : counts->replaced);
  return invalid == InvalidUtf8::replace;
}

nlohmann::json parsed(const RawDocument& raw, const std::string& path) {
  return parse_json(raw.text, {path, ExitCode::data, kRepair, raw.line});
}

/// The text of the field; moved out of `raw` if the line is well-formed.
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
    throw missing(ExitCode::data,
                  path + ":" + std::to_string(raw.line) + ": field \"" + field + "\"",
                  names.empty() ? "the object is empty" : "found " + abbreviate(names, 240),
                  "choose the field with --field");
  }
  if (it->is_null()) return "";
  if (!it->is_string()) {
    throw bad_line(path, raw.line, "a string in the field \"" + field + "\"",
                   std::string("a value of type ") + it->type_name(),
                   "choose another field with --field, or remove the line");
  }
  return std::move(it->get_ref<std::string&>());
}

Error lone_surrogate(const RawDocument& raw, const std::string& path, size_t at) {
  return bad_line(path + ":" + std::to_string(raw.line), static_cast<int64_t>(at) + 1,
                  "UTF-16 surrogates in pairs", "\\" + raw.text.substr(at + 1, 5) + " alone",
                  "repair or remove the line, or choose --invalid-utf8 replace or skip");
}

/// Converts CRLF to newlines. A final carriage return is part of a CRLF whose newline was removed.
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
  if (kind != DocumentKind::jsonl && kind != DocumentKind::row) refuse_nul(raw, path, kind);
  const auto count_invalid = [&](int64_t bytes, size_t first) {
    counts->invalid_bytes += bytes;
    if (!counts->first_invalid.empty()) return;
    counts->first_invalid =
        place_of_byte(raw, path, kind, first) + ", " + offset_of_byte(raw, first);
  };
  const size_t bad = first_invalid_utf8(raw.text);
  if (bad != std::string_view::npos) {
    if (invalid == InvalidUtf8::error) throw bad_utf8(raw, path, kind, bad);
    count_invalid(invalid_bytes_from(raw.text, bad), bad);
    if (!keeps_invalid(invalid, counts)) return false;
    raw.text = replace_invalid_utf8(raw.text);
  }
  if (kind == DocumentKind::jsonl) {
    const size_t lone = first_lone_surrogate(raw.text);
    if (lone != std::string::npos) {
      if (invalid == InvalidUtf8::error) throw lone_surrogate(raw, path, lone);
      count_invalid(replace_lone_surrogates(&raw.text), lone);
      if (bad == std::string_view::npos && !keeps_invalid(invalid, counts)) return false;
    }
    replace_non_finite(&raw.text);
    *text = json_field(raw, path, field);
  } else {
    *text = kind == DocumentKind::row ? std::move(raw.text) : with_newlines(std::move(raw.text));
  }
  if (!is_blank(*text)) return true;
  ++counts->empty;
  return false;
}

void TextCounts::add(const TextCounts& other) {
  empty += other.empty;
  replaced += other.replaced;
  skipped += other.skipped;
  invalid_bytes += other.invalid_bytes;
  if (first_invalid.empty()) first_invalid = other.first_invalid;
}

void require_mostly_utf8(const TextCounts& counts, int64_t bytes) {
  constexpr int64_t kFew = 64 << 10;
  if (bytes < kFew || counts.invalid_bytes <= bytes / 10) return;
  throw Error(
      ExitCode::data, counts.first_invalid, "at most 10 % of bytes that are not valid UTF-8",
      fmt::format("{:.1f} % of the {} bytes read so far, from here on",
                  100 * static_cast<double>(counts.invalid_bytes) / static_cast<double>(bytes),
                  bytes),
      "decompress or convert the inputs: `file` may tell their format");
}

}  // namespace bamtrain
