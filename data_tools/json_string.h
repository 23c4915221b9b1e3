#pragma once
// One string of a line of JSON, in no more memory than the line: parsed as a whole a line takes
// several times its length.

#include <optional>
#include <string>
#include <string_view>

namespace bamtrain {

/// The string that the object in `line` has as `field`, "" for null, in the memory of the line,
/// which is moved from; beside it 8 bytes for each key of the objects around any place. None, and
/// the line is as it was, where it has none: for what is no JSON object, a member that is absent or
/// another value, a key that is there twice in any object and surrogates without their other half,
/// as well as for more levels and values than parse_json takes. Whoever parses it can say which.
std::optional<std::string> take_json_string(std::string* line, std::string_view field);

}  // namespace bamtrain
