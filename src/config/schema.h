#pragma once
// The JSON Schema of a run configuration, for --print-schema and for editors.

#include <nlohmann/json_fwd.hpp>

namespace bamtrain {

/// Draft 2020-12, complete: descriptions, types, limits, allowed values, defaults, required keys;
/// no other keys are allowed. "$schema" is allowed only in a configuration's text. The schema
/// covers single keys; validate.h checks relations between keys. "$comment" marks keys that may
/// change on resume.
nlohmann::ordered_json schema_json();

}  // namespace bamtrain
