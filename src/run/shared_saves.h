#pragma once
// A checkpoint that the processes of a run write together, each the part that it keeps.

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint.h"
#include "dist/communicator.h"
#include "train/trainer.h"

namespace bamtrain {

/// Has all processes write into one file in `folder`. Returns why they cannot, with the ranks
/// concerned: each node may have a folder of its own, or one process may not write. Empty: they
/// can. Collective. REQUIRES: the folder exists on rank 0, and no other process uses it.
std::string try_shared_file(Communicator& comm, const std::string& folder);

/// Names, types and shapes of what a checkpoint has, without memory.
CheckpointContents outline_of(const Trainer& trainer);
/// Writes what this process keeps. REQUIRES: the processes divide the state.
void write_own(const Trainer& trainer, CheckpointPart& part);
/// The sums of the parts of all processes. Collective.
CheckpointSums sum_over_ranks(Communicator& comm, const CheckpointSums& own);

}  // namespace bamtrain
