#pragma once
// The checkpoint that a user means by a folder: a checkpoint's own, or a run's.

#include <string>

#include "checkpoint/checkpoint.h"

namespace bamtrain {

/// Whether `folder` is a run's: it holds checkpoints, and is not one.
bool is_run_folder(const std::string& folder);

/// Opens the checkpoint in `folder`. In a run's folder, that is the best one if the run has
/// checkpoint.best, else the newest; `tell` gets which. Damaged newest ones are skipped as by
/// newest_checkpoint; a damaged or missing best one is an error that names the newest. Errors as open_checkpoint and newest_checkpoint.
Checkpoint open_named_checkpoint(const std::string& folder, const Warn& tell);

}  // namespace bamtrain
