#pragma once
// Reads options that mechanisms and tasks declare (core/options.h) from JSON. core/options_json.h
// is the inverse.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "core/options.h"
#include "core/options_json.h"

namespace bamtrain {

/// The options that the object `value` at key `path` sets; the others have the defaults of a
/// config_version. Throws Error (ExitCode::config) for a value of wrong type or out of range.
/// Ignores other members of the object.
Options read_options(const nlohmann::json& value, const std::vector<OptionSpec>& specs,
                     const std::string& path, const Origin& origin, int64_t version);

/// The schema with description and default.
ValueSchema option_schema(const OptionSpec& o);

}  // namespace bamtrain
