#pragma once
// Sizes in config.json of a folder of weights, in addition to its tensors.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/init_from_settings.h"
#include "train/run_config.h"

namespace bamtrain {

/// Compares the sizes in `source`, the content of `path`, with those of the run's model, which the
/// folder's tensors have: vocabulary, width, layers, key heads, MLP width. If the folder has the
/// run's mechanisms, it also compares the shapes of their parameters, except for what init_from.new
/// names. Skips missing and null members. Throws Error (ExitCode::checkpoint) naming the member.
/// REQUIRES: check_init_from has found every tensor in its shape.
void check_init_from_sizes(const RunConfig& config, NewParts parts, const std::string& path,
                           const nlohmann::json& source);

}  // namespace bamtrain
