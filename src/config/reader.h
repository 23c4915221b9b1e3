#pragma once
// The only reader of run configurations.
//
// A configuration is one JSON object. Its keys are those of keys.h, and "$schema" for editors.
// Unknown, duplicate, missing or out-of-range keys, trailing text and comments are errors
// (ExitCode::config). They name the file or override, the key, what is allowed, what was found and
// the remedy. Nothing is guessed.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/validate.h"
#include "train/run_config.h"

namespace bamtrain {

/// Reads the configuration in file `path` and applies `overrides` ("a.b.c=value", see overrides.h)
/// in order. The result is complete and valid. A file without config_version has `version`. Throws
/// Error (ExitCode::io) if the file cannot be read.
RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides,
                          int64_t version = kConfigVersion);

/// The same for a document, which may be read with different overrides.
RunConfig read_run_config(const ConfigDocument& document, const std::vector<std::string>& overrides,
                          ConfigUse use = ConfigUse::training, int64_t version = kConfigVersion);

/// The same for a text without a base; `where` replaces the file in messages.
RunConfig read_run_config_text(const std::string& text, const std::string& where,
                               const std::vector<std::string>& overrides,
                               ConfigUse use = ConfigUse::training);

/// Every key with its value, in documented order. Reading it back gives an equal configuration;
/// numbers are bitwise identical.
nlohmann::ordered_json resolved_json(const RunConfig& config);

}  // namespace bamtrain
