#pragma once
// What a configuration of ModelKind::max_retrieval may say of a model that is no decoder.

#include "config/origin.h"
#include "train/run_config.h"

namespace bamtrain {

/// Keys that would do nothing stay at their defaults, and those that must have one value have it.
/// Error (ExitCode::config) names the first that has not. Its task is for validate to ask for.
void check_max_retrieval(const RunConfig& config, const Origin& origin);

}  // namespace bamtrain
