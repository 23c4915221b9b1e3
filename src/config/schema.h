#pragma once
// The JSON Schema of a run configuration, for --print-schema and for editors.

#include <nlohmann/json_fwd.hpp>

namespace bamtrain {

/// Draft 2020-12, complete: descriptions, types, limits, allowed values, defaults, required keys,
/// no other keys. "$schema" is a member, of a configuration's text alone. It knows single keys;
/// what relates two keys is checked in validate.h. Keys that may change when a run is resumed say
/// so in "$comment".
nlohmann::ordered_json schema_json();

}  // namespace bamtrain
