#pragma once
// The configuration that a run uses, with numbers that it keeps from the model it starts from.

#include "train/run_config.h"

namespace bamtrain {

/// `config` with numbers that it leaves open and that depend on an earlier training length
/// (model/length_options.h). They come from the checkpoint to resume if that run used init_from,
/// else from init_from.folder. Throws Error (ExitCode::config) for a number that the run's length
/// does not allow; also as source_attention.
RunConfig begun_config(const RunConfig& config);

}  // namespace bamtrain
