#pragma once
// JSON text to values, with nothing forgiven.

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
  /// For texts that programs write. Empty: the remedy is one for the author of the text, such as
  /// "remove the comma before it".
  std::string remedy = {};
  int64_t line = 1;  // the number of the text's first line in `where`
};

/// The value that `text` holds. Error (source.code) "where:line:column" for anything that is not
/// one JSON value (RFC 8259): comments, trailing text, NUL bytes, a byte order mark, invalid UTF-8,
/// numbers past the range of a double; and for a key that appears twice in an object, nesting past
/// 100 levels or more than 4,194,304 values, so that no text takes more time and memory than its
/// reader has for it. Columns count bytes from 1.
nlohmann::json parse_json(std::string_view text, const JsonSource& source);

/// The object that a line of a file (core/line_reader.h) holds. Errors as above; also for another
/// value, and for a line longer than LineReader::kMost.
nlohmann::json parse_json_line(std::string_view line, const JsonSource& source);

/// The value at a path ("model.norm.eps") of a document, or null where there is none.
const nlohmann::json* find_value(const nlohmann::json& document, const std::string& path);

/// The paths of a document and what stands there; arrays are whole values. An empty object holds
/// none.
std::map<std::string, nlohmann::json> leaves_of(const nlohmann::json& document);

/// That value for a message, abbreviated; "nothing" where there is none.
std::string text_at(const nlohmann::json& document, const std::string& path);

}  // namespace bamtrain
