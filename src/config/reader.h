#pragma once
// The only reader of run configurations.
//
// JSON, one object; the keys are those of keys.h, and "$schema", which is for editors. Unknown,
// duplicate, missing or out-of-range keys, trailing text and comments are errors (ExitCode::config)
// that name file or override, key, what is allowed, what was found and the remedy. Nothing is
// guessed.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/validate.h"
#include "train/run_config.h"

namespace bamtrain {

/// The configuration in file `path` with `overrides` ("a.b.c=value", see overrides.h) applied in
/// order, complete and valid. Error (ExitCode::io) where the file cannot be read.
RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text; `where` stands for the file in messages.
RunConfig read_run_config_text(const std::string& text, const std::string& where,
                               const std::vector<std::string>& overrides,
                               ConfigUse use = ConfigUse::training);

/// Every key with its value, in documented order. Reading it back gives an equal configuration, to
/// the last bit of every number.
nlohmann::ordered_json resolved_json(const RunConfig& config);

}  // namespace bamtrain
