#pragma once
// Values of --set as people write them on a command line. Files hold JSON alone.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/value_schema.h"

namespace bamtrain {

/// What `text`, which reads as `parsed` in JSON or as a bare string, means to `schema`: True and
/// False, 1_000, and lists of numbers or fixed names without brackets: 64,128. Returns `parsed` for
/// all other texts.
nlohmann::json command_line_value(const std::string& text, const nlohmann::json& parsed,
                                  const ValueSchema& schema);

}  // namespace bamtrain
