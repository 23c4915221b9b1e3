#pragma once
// Where a run continues.

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The checkpoint to continue from, as checkpoint.resume asks; none: the run starts afresh. Error
/// (config, checkpoint): there is something else than it expects; (io): folders that cannot be
/// looked at.
std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& warn);

/// The folder outside out_dir from which the run once started; "" where there is none.
std::string started_from(const RunConfig& c, const Checkpoint& checkpoint);

}  // namespace bamtrain
