#pragma once
// Strict JSON parsing.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/error.h"

namespace bamtrain {

/// Where a JSON text comes from, for errors.
struct JsonSource {
  std::string where;  // a file or a key
  ExitCode code;
  /// The remedy for texts that programs write. If empty, the remedy addresses the text's author,
  /// such as "remove the comma before it".
  std::string remedy = {};
  int64_t line = 1;  // the number of the text's first line in `where`
};

/// Parses the value in `text`. Throws Error (source.code) at "where:line:column" for anything that
/// is not one JSON value (RFC 8259): comments, trailing text, NUL bytes, a byte order mark, invalid
/// UTF-8, numbers outside the range of double. Also refuses duplicate keys in an object, nesting
/// deeper than 100 levels and more than 4,194,304 values, which bounds time and memory for any
/// text. Columns count bytes from 1.
nlohmann::json parse_json(std::string_view text, const JsonSource& source);

/// Parses the object in one line of a file (core/line_reader.h). Errors as above; also if the value
/// is not an object, or the line is longer than LineReader::kMost.
nlohmann::json parse_json_line(std::string_view line, const JsonSource& source);

/// The value at a path ("model.norm.eps") of a document, or null if missing.
const nlohmann::json* find_value(const nlohmann::json& document, const std::string& path);

/// The leaf paths of a document and their values; an array is one value. An empty object has no
/// leaves.
std::map<std::string, nlohmann::json> leaves_of(const nlohmann::json& document);

/// The value at `path` for a message, abbreviated; "nothing" if missing.
std::string text_at(const nlohmann::json& document, const std::string& path);

}  // namespace bamtrain
