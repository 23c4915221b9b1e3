#pragma once
// Sizes that config.json of a folder of weights says beside its tensors.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/init_from_settings.h"
#include "train/run_config.h"

namespace bamtrain {

/// Compares the sizes in `source`, the content of `path`, with those of the run's model, which the
/// folder's tensors have: vocabulary, width, layers, heads of keys, the mlp's, and where the folder
/// has the run's mechanisms the shapes of their parameters, but for what init_from.new names.
/// A member that is absent or null says nothing. Error (ExitCode::checkpoint) naming the member.
/// REQUIRES: check_init_from has found every tensor in its shape.
void check_init_from_sizes(const RunConfig& config, NewParts parts, const std::string& path,
                           const nlohmann::json& source);

}  // namespace bamtrain
