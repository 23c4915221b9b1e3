#pragma once
// What state.json of a checkpoint says about the model whose weights a new run begins with.

#include "run/init_from_settings.h"
#include "run/train.h"

namespace bamtrain {

/// If init_from.folder is a checkpoint, compares its run's configuration as
/// check_init_from_settings does: the keys of `model` that TrainRun::refused_keys names. Throws
/// Error (ExitCode::checkpoint), also if one of its files is damaged.
void check_init_from_state(const TrainRun& run, NewParts parts, const Warn& warn);

}  // namespace bamtrain
