#pragma once
// --set a.b.c=value.

#include <nlohmann/json.hpp>
#include <string>

namespace bamtrain {

struct Override {
  std::string path;  // "a.b.c"
  nlohmann::json value;
  std::string text;   // as given, abbreviated
  std::string given;  // the value as given
};

/// Splits at the first '='. The value is JSON if it parses as such, else a bare string. A value
/// that begins like an object, an array or a quoted string must be JSON. Throws Error
/// (ExitCode::usage) without '=', for an empty name or more than 100 names; (ExitCode::config) for
/// invalid JSON.
Override parse_override(const std::string& text);

/// The override that is meant for `document`: model.norm=layernorm is model.norm.kind=layernorm,
/// and the value is a command_line_value of the key.
Override meant_override(Override change, const nlohmann::json& document);

/// Writes the value at its path, replacing any value there and creating missing parent objects.
/// Does not check that the key is known; the reader does. Returns the first part of the path that
/// did not exist before, or the whole path if all of it existed. Throws Error if the path leads
/// through a value that is not an object.
std::string apply_override(nlohmann::json& document, const Override& change);

}  // namespace bamtrain
