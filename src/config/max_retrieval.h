#pragma once
// Restrictions on configurations of ModelKind::max_retrieval, a model that is not a decoder.

#include "config/origin.h"
#include "train/run_config.h"

namespace bamtrain {

/// Checks that keys without effect are at their defaults, and keys with only one valid value have
/// it. Throws Error (ExitCode::config) naming the first violation. validate checks the task.
void check_max_retrieval(const RunConfig& config, const Origin& origin);

}  // namespace bamtrain
