#pragma once
// The configuration that a run works by: what it keeps of the model that it begins from.

#include "train/run_config.h"

namespace bamtrain {

/// `config` with the numbers that the length of an earlier training gives where it leaves them open
/// (model/length_options.h): those of the checkpoint to resume from, where that run began by
/// init_from, else those of init_from.folder. Error (ExitCode::config): a number that the run's
/// length does not allow; as source_attention.
RunConfig begun_config(const RunConfig& config);

}  // namespace bamtrain
