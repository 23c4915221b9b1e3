#pragma once
// The checkpoints that a run writes.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "run/resume.h"
#include "run/train.h"
#include "train/trainer.h"

namespace bamtrain {

/// Writes checkpoints to out_dir and removes old ones. Finite parameters may have diverged all the
/// same: then the next loss is NaN, and nobody can resume from them. So a checkpoint counts towards
/// checkpoint.keep only once a finite loss of its parameters was seen. Until then one more
/// checkpoint is kept.
class Saves {
 public:
  /// `run`, `beginning` and `lock` (set on rank 0) must outlive it. `together`: each process writes
  /// the part of the state that it keeps (run/shared_saves.h), as long as what it writes is found
  /// again; otherwise rank 0 writes all. A missing or damaged best checkpoint goes to `warn`.
  /// Throws Error (io) if the system cannot read it now.
  Saves(const TrainRun& run, const Beginning& beginning, const FolderLock* lock, bool together,
        Warn warn);

  /// `seen`: whether these parameters had a finite loss. Collective, like the others. Throws Error
  /// (io, nonfinite). Writes and removes nothing if the lock is no longer held.
  void write(Trainer& trainer, Communicator& comm, int64_t step, bool seen);
  /// Reports a finite loss for all steps up to `step`.
  void finite_until(Communicator& comm, int64_t step);
  /// Whether `value` of checkpoint.best.metric, after `step` steps, is the best so far; its
  /// checkpoint must then be written. Non-finite values are never best. `validation`: the result of
  /// the pass after that step, null without one. The same on all processes. REQUIRES: the config
  /// names a metric.
  bool is_best(Communicator& comm, int64_t step, double value, nlohmann::json validation);
  /// The step of the best checkpoint, on rank 0; empty if nothing was measured yet.
  std::optional<int64_t> best_step() const;
  /// That checkpoint's `validation`, on rank 0. REQUIRES: best_step() has a value.
  const nlohmann::json& best_validation() const { return best_->validation; }

  /// Removes checkpoints that are not kept, and leftovers of killed processes. `seen`: as in write.
  void prune(Communicator& comm, bool seen);

  /// On rank 0: the failure of a step, with what to do next, also if the newest checkpoint has
  /// diverged.
  Error explained(const NonfiniteStep& e) const;
  /// On rank 0: where to resume a failed run, for the end of a remedy.
  std::string way_back() const;

 private:
  /// state.json, on rank 0.
  nlohmann::json state_of(const Trainer& trainer, int64_t step) const;
  bool write_together(const Trainer& trainer, Communicator& comm, int64_t step);
  void write_alone(Trainer& trainer, Communicator& comm, int64_t step);
  /// `read_back`: as for prune_checkpoints.
  void prune_here(bool seen, std::optional<int64_t> read_back = {}) const;

  struct Best {
    int64_t step = 0;
    double value = 0;
    nlohmann::json validation;
    bool at_stop = false;  // at a step that is measured only because the run stops there
  };

  const TrainRun& run_;
  const Beginning& beginning_;
  const FolderLock* lock_;
  bool together_;
  Warn warn_;
  int64_t newest_;            // its step; 0: no checkpoint
  std::string folder_;        // known to rank 0
  bool seen_ = false;         // whether a loss of the newest was seen
  std::optional<Best> best_;  // known to rank 0
  nlohmann::json of_;         // what the best is measured on; set on rank 0
};

}  // namespace bamtrain
