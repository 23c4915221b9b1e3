#pragma once
// Where a run continues.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "record/progress.h"
#include "run/train.h"
#include "train/trainer.h"

namespace bamtrain {

/// Whether there is something at the path of out_dir. Error (io) where that cannot be looked at.
bool out_dir_exists(const std::string& out_dir);

/// Error (io) where anything but its lock is in a folder that this run has made, since
/// find_checkpoint found none there: another run was in it meanwhile.
void require_untouched(const std::string& out_dir);

/// The checkpoint to continue from, as checkpoint.resume asks; none: the run starts afresh. Error
/// (config, checkpoint): there is something else than it expects; (io): folders that cannot be
/// looked at.
std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& warn);

/// Error (config): the run has settings that the checkpoint's steps do not allow; (data): other
/// data; (checkpoint): counts that are not those of its steps. `note` is told what was compared.
/// REQUIRES: find_checkpoint gave it; the trainer's data are open.
void check_fits(const TrainRun& run, const Checkpoint& checkpoint, const Trainer& trainer,
                const Warn& note);

struct Beginning {
  int64_t step = 0;
  int64_t optimizer_steps = 0;  // before the run's first, of moments that init_from has taken
  // Known to rank 0:
  std::string checkpoint;           // its folder; empty: the run starts afresh
  std::string started_from;         // the folder outside out_dir from which it once started, or ""
  nlohmann::json initialized_from;  // see run/init_from.h; null: initial values
  nlohmann::json best;              // see run/saves.h; null: none
};

/// Master weights, moments and step of the checkpoint that find_checkpoint finds on all processes;
/// step 0 where the run starts afresh, with the initial values or those of init_from. Collective.
/// Error (config): the run has settings that the checkpoint's steps do not allow; as
/// find_checkpoint and read_init_from.
Beginning restore(const TrainRun& run, Communicator& comm, Trainer& trainer, Progress& progress);

/// In place of the master weights those of the checkpoint in `folder`, which rank 0 reads, on all
/// processes. Collective. Error (checkpoint, io).
void read_master_weights(const std::string& folder, Communicator& comm, Trainer& trainer);

}  // namespace bamtrain
