#pragma once
// JSON that other programs or damage may have written: read in full, or refused.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace bamtrain {

/// The value of `text`. Refused as an Error (ExitCode::checkpoint) naming `where`: anything that is
/// not one JSON value in UTF-8, duplicate keys (of which JSON leaves the meaning open), nesting
/// deeper than 64, and zero bytes, at which the library would take the text to end.
nlohmann::json parse_json_text(std::string_view text, const std::string& where);

}  // namespace bamtrain
