#pragma once
// A checkpoint that the processes of a run write together, each the part that it keeps.

#include <string>

#include "checkpoint/checkpoint.h"
#include "dist/communicator.h"
#include "train/trainer.h"

namespace bamtrain {

/// Whether `folder` is one for all processes, and keeps what each writes at its place in one file.
/// Not so: folders of each node, and stores that take files whole from whoever closes them last.
/// Collective. REQUIRES: the folder exists on rank 0, and no other process uses it.
bool is_one_folder(Communicator& comm, const std::string& folder);

/// Names, types and shapes of what a checkpoint has, without memory.
CheckpointContents outline_of(const Trainer& trainer);
/// Writes what this process keeps. REQUIRES: the processes divide the state.
void write_own(const Trainer& trainer, CheckpointPart& part);

}  // namespace bamtrain
