#pragma once
// The configuration that a run uses, with numbers that it keeps from the model it starts from.

#include <string>
#include <vector>

#include "train/run_config.h"

namespace bamtrain {

/// The configuration in `file` with `overrides`, as read_run_config. What it leaves open is taken
/// from the checkpoint to resume, if there is one:
/// - config_version;
/// - numbers that depend on an earlier training length (model/length_options.h), if that run used
///   init_from. Without a checkpoint, they come from init_from.folder.
/// Throws Error (ExitCode::config) for a number that the run's length does not allow; also as
/// read_run_config and source_attention.
RunConfig begun_config(const std::string& file, const std::vector<std::string>& overrides);

}  // namespace bamtrain
