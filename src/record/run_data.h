#pragma once
// Finds the shards of a run when its checkpoints are read. The run's config names them relative to
// the folder in which training was started.

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The absolute path of the folder that contains the checkpoint, however the checkpoint is named.
std::string run_folder(const Checkpoint& checkpoint);

/// A path of a config that was replaced.
struct MovedPath {
  std::string key, before, now;
};

/// Updates data.train and data.val of a trained run's config. If nothing exists at a path, the
/// shards are looked for at the same place relative to `run_folder` as the path had relative to
/// out_dir. If something exists there, it replaces the path. Returns the changes. An absolute and a
/// relative path have no such relation.
std::vector<MovedPath> find_run_data(RunConfig* config, const std::string& run_folder);

}  // namespace bamtrain
