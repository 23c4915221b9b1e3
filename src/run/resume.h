#pragma once
// Decides where a run continues.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "record/progress.h"
#include "run/train.h"
#include "train/trainer.h"

namespace bamtrain {

/// Whether the path of out_dir exists. Throws Error (io) if that cannot be determined.
bool out_dir_exists(const std::string& out_dir);

/// Throws Error (io) if a folder that this run has created contains anything but its lock.
/// find_checkpoint found no folder there, so another run was in it in the meantime.
void require_untouched(const std::string& out_dir);

/// The checkpoint to continue from, according to checkpoint.resume; empty if the run starts afresh.
/// Warnings, and which checkpoint of a run's folder it is, go to `tell`.
/// Throws Error (config, checkpoint) if it finds something other than expected; (io) if folders
/// cannot be read.
std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& tell);

/// Throws Error (config) if the run has settings that the checkpoint's steps do not allow; (data)
/// for other data; (checkpoint) for counts that do not match its steps. What was compared goes to
/// `note`. REQUIRES: find_checkpoint returned it; the trainer's data are open.
void check_fits(const TrainRun& run, const Checkpoint& checkpoint, const Trainer& trainer,
                const Warn& note);

struct Beginning {
  int64_t step = 0;
  int64_t optimizer_steps = 0;  // seen by optimizer state from init_from, before the run's first
  // Known to rank 0:
  std::string checkpoint;           // its folder; empty: starts afresh
  std::string started_from;         // folder outside out_dir that the run once started from, or ""
  nlohmann::json initialized_from;  // see run/init_from.h; null: initial values
  nlohmann::json best;              // see run/saves.h; null: no best checkpoint
};

/// Loads master weights, optimizer state and step of the checkpoint from find_checkpoint on all
/// processes. If the run starts afresh: step 0, with initial values or those of init_from.
/// Collective. Throws Error (config) if the run has settings that the checkpoint's steps do not
/// allow; and as find_checkpoint and read_init_from.
Beginning restore(const TrainRun& run, Communicator& comm, Trainer& trainer, Progress& progress);

/// Replaces the master weights on all processes by those of the checkpoint in `folder`, which rank
/// 0 reads. Collective. Throws Error (checkpoint, io).
void read_master_weights(const std::string& folder, Communicator& comm, Trainer& trainer);

}  // namespace bamtrain
