#pragma once
// The checkpoints that a run leaves.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "run/resume.h"
#include "run/train.h"
#include "train/trainer.h"

namespace bamtrain {

/// Writes checkpoints to out_dir and removes old ones. Parameters can be finite and have diverged
/// all the same: the next loss is then none, and nobody can go on from them. So a checkpoint is one
/// of the checkpoint.keep that stay once a loss of its parameters was seen; until then one more
/// stays.
class Saves {
 public:
  /// `run`, `beginning` and `lock`, which rank 0 has, must outlive it. A best checkpoint that
  /// is not there any more, or damaged, is named in a call of `warn`. Error (io): what the system
  /// cannot read now.
  Saves(const TrainRun& run, const Beginning& beginning, const FolderLock* lock, Warn warn);

  /// `seen`: whether these parameters had a finite loss. Collective, as the others. Error (io,
  /// nonfinite); nothing is written or removed where the lock is not held any more.
  void write(Trainer& trainer, Communicator& comm, int64_t step, bool seen);
  /// Steps up to `step` had a finite loss.
  void finite_until(Communicator& comm, int64_t step);
  /// Whether `value` of checkpoint.best.metric, after `step` steps, is the best so far, which is
  /// then to be written; nothing is better than what is not finite. `validation`: what the pass
  /// after that step gave, null without one. The same on all processes.
  /// REQUIRES: the config names a metric.
  bool is_best(Communicator& comm, int64_t step, double value, nlohmann::json validation);
  /// The step of the checkpoint at which it was best, on rank 0; none: it was not measured yet.
  std::optional<int64_t> best_step() const;
  /// That checkpoint's `validation`, on rank 0. REQUIRES: best_step() is one.
  const nlohmann::json& best_validation() const { return best_->validation; }

  /// Removes what is not to stay, and what a process that died has left. `seen`: as write.
  void prune(Communicator& comm, bool seen);

  /// On rank 0: the failure of a step, with what to do then, and where the newest checkpoint has
  /// diverged.
  Error explained(const NonfiniteStep& e) const;
  /// On rank 0: from where a run that failed goes on, for the end of a remedy.
  std::string way_back() const;

 private:
  void prune_here(bool seen) const;

  struct Best {
    int64_t step = 0;
    double value = 0;
    nlohmann::json validation;
    bool at_stop = false;  // of a step where the run measures it only because it stops there
  };

  const TrainRun& run_;
  const Beginning& beginning_;
  const FolderLock* lock_;
  Warn warn_;
  int64_t newest_;            // its step; 0: none
  std::string folder_;        // known to rank 0
  bool seen_ = false;         // whether a loss of the newest was
  std::optional<Best> best_;  // known to rank 0
  nlohmann::json of_;         // what the best is measured on; rank 0's
};

}  // namespace bamtrain
