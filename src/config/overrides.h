#pragma once
// --set a.b.c=value.

#include <nlohmann/json.hpp>
#include <string>

namespace bamtrain {

struct Override {
  std::string path;  // "a.b.c"
  nlohmann::json value;
  std::string text;  // as given
};

/// Splits at the first '='. The value is JSON where it parses as such, else a bare string; one that
/// begins like an object, an array or a quoted string must be JSON. Error (ExitCode::usage) without
/// '=', with an empty name or more than 100 of them, (ExitCode::config) for damaged JSON.
Override parse_override(const std::string& text);

/// Writes the value at its path, replacing what is there whole and creating objects on the way.
/// Whether the key exists is for the reader to say. Returns the first part of the path that was not
/// there before, the whole path where all of it was. Error where the path leads through something
/// not an object.
std::string apply_override(nlohmann::json& document, const Override& change);

}  // namespace bamtrain
