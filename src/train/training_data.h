#pragma once
// The sequences that a run reads: shards, tasks, or a mixture of them.

#include <memory>

#include "data/sequences.h"
#include "train/run_config.h"

namespace bamtrain {

/// Of data.train. Errors naming keys and files, as documented for train().
std::unique_ptr<Sequences> open_training_data(const RunConfig& config);

/// Of data.val; null where there is none.
std::unique_ptr<Sequences> open_validation_data(const RunConfig& config);

}  // namespace bamtrain
