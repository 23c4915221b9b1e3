#pragma once
// What state.json of a checkpoint whose weights a new run begins with says of their model.

#include "run/init_from_settings.h"
#include "run/train.h"

namespace bamtrain {

/// Where init_from.folder is a checkpoint, the same as check_init_from_settings by its run's
/// configuration: the keys of `model` that TrainRun::refused_keys names. Error
/// (ExitCode::checkpoint) also where a file of it is damaged.
void check_init_from_state(const TrainRun& run, NewParts parts, const Warn& warn);

}  // namespace bamtrain
