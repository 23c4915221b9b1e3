#pragma once
// Options that mechanisms and tasks declare (core/options.h), from JSON to Options; the way back is
// core/options_json.h.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "core/options.h"
#include "core/options_json.h"

namespace bamtrain {

/// Those that the object `value` at key `path` gives, the others at the defaults of a
/// config_version. Error (ExitCode::config) for a value of wrong type or range; what the object
/// holds besides is for others.
Options read_options(const nlohmann::json& value, const std::vector<OptionSpec>& specs,
                     const std::string& path, const Origin& origin, int64_t version);

/// With its description and default.
ValueSchema option_schema(const OptionSpec& o);

}  // namespace bamtrain
