#pragma once
// JSON text to values, with nothing forgiven.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace bamtrain {

/// The value that `text` holds. Error (ExitCode::config) "where:line:column" for anything that is
/// not one JSON value (RFC 8259): comments, trailing text, NUL bytes, invalid UTF-8, numbers past
/// the range of a double; and for a key that appears twice in an object, or nesting past 100
/// levels. Columns count bytes from 1.
nlohmann::json parse_json_strict(const std::string& text, const std::string& where);

}  // namespace bamtrain
