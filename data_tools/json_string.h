#pragma once
// Extracts one string from a line of JSON without extra memory: a full parse needs several times
// the line's length.

#include <optional>
#include <string>
#include <string_view>

namespace bamtrain {

/// Returns the string member `field` of the object in `line`, "" for null. It reuses the memory of
/// `line`, which is moved from. Extra memory: 8 bytes per key of the enclosing objects. Returns
/// nullopt, with `line` unchanged, for anything but a JSON object; a missing member or one of
/// another type; a key that occurs twice in any object; unpaired surrogates; and more levels or
/// values than parse_json accepts. The caller can then parse the line to find out which.
std::optional<std::string> take_json_string(std::string* line, std::string_view field);

}  // namespace bamtrain
