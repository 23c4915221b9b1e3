#pragma once
// Where the shards of a run are when its checkpoints are read: its config names them as they were
// to be found from the folder in which the training was started.

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The absolute path of the folder that a checkpoint lies in, however the checkpoint is named.
std::string run_folder(const Checkpoint& checkpoint);

/// A path of a config that now stands for another place.
struct MovedPath {
  std::string key, before, now;
};

/// Gives data.train and data.val of a trained run's config, where nothing is at such a path, the
/// same place relative to `run_folder` as it had to out_dir, where that has something. Returns what
/// it changed. Paths of which one is absolute and the other is not have no place relative to each
/// other.
std::vector<MovedPath> find_run_data(RunConfig* config, const std::string& run_folder);

}  // namespace bamtrain
