#include "run/saves.h"

#include <fmt/format.h>

#include <cmath>

#include "core/durable_file.h"
#include "dist/together.h"
#include "record/provenance.h"
#include "record/run_files.h"
#include "run/host_state.h"
#include "run/init_from.h"

namespace bamtrain {

namespace {

const char* mode_of(const CheckpointConfig& c) { return c.best_is_highest ? "max" : "min"; }

}  // namespace

Saves::Saves(const TrainRun& run, const Beginning& beginning, const FolderLock* lock, Warn warn)
    : run_(run),
      beginning_(beginning),
      lock_(lock),
      warn_(std::move(warn)),
      newest_(beginning.step),
      folder_(beginning.checkpoint) {
  const CheckpointConfig& c = run_.config.checkpoint;
  const nlohmann::json& best = beginning.best;
  if (c.best_metric.empty() || best.is_null()) return;
  if (best["metric"] != c.best_metric || best["mode"] != mode_of(c)) return;  // chosen anew
  const auto step = best["step"].get<int64_t>();
  if (has_checkpoint(run_.config.out_dir, step)) {
    best_ = {step, best["value"].get<double>()};
    return;
  }
  warn_(fmt::format("the best checkpoint so far, of step {}, is not in {}: the best is sought anew",
                    step, run_.config.out_dir));
}

std::optional<int64_t> Saves::best_step() const {
  return best_ ? std::optional(best_->step) : std::nullopt;
}

bool Saves::is_best(Communicator& comm, int64_t step, double value) {
  const bool highest = run_.config.checkpoint.best_is_highest;
  const bool better =
      std::isfinite(value) && (!best_ || (highest ? value > best_->value : value < best_->value));
  // Other ranks do not know what was best.
  const bool best = comm.any(comm.rank() == 0 && better);
  if (best) best_ = {step, value};
  return best;
}

void Saves::write(Trainer& trainer, Communicator& comm, int64_t step, bool seen) {
  const RunConfig& c = run_.config;
  on_first_rank(comm, [&] {
    trainer.check_finite(step);
    lock_->require_held();
    CheckpointContents contents;
    const HostState host(trainer, HostCopy::Contents::downloaded);
    contents.model = host.model(trainer.layout());
    contents.optimizer = host.optimizer(trainer.layout());
    contents.state["config"] = run_.resolved;
    contents.state["data"] = describe_data(trainer.training_data());
    contents.state["data"]["windows"] = step * trainer.sequences_per_step();
    contents.state["program"] = this_program();
    contents.state["tokens"] = step * c.train.tokens_per_step;
    if (!beginning_.started_from.empty()) contents.state[kStartedFrom] = beginning_.started_from;
    if (!beginning_.initialized_from.is_null()) {
      contents.state[kInitializedFrom] = beginning_.initialized_from;
    }
    if (best_) {
      contents.state["best"] = {{"metric", c.checkpoint.best_metric},
                                {"mode", mode_of(c.checkpoint)},
                                {"step", best_->step},
                                {"value", best_->value}};
    }
    save_checkpoint(c.out_dir, step, contents, warn_);
    prune_here(seen);
    folder_ = c.out_dir + "/" + checkpoint_name(step);
  });
  newest_ = step;
  seen_ = seen;
}

void Saves::finite_until(Communicator& comm, int64_t step) {
  if (newest_ == 0 || seen_ || step <= newest_) return;
  seen_ = true;
  prune(comm, true);
}

void Saves::prune(Communicator& comm, bool seen) {
  on_first_rank(comm, [&] { prune_here(seen); });
}

void Saves::prune_here(bool seen) const {
  lock_->require_held();
  const CheckpointConfig& c = run_.config.checkpoint;
  prune_checkpoints(run_.config.out_dir, c.keep + (seen ? 0 : 1), c.keep_every, best_step(), warn_);
}

Error Saves::explained(const NonfiniteStep& e) const {
  // With a finite loss it is the gradient of this step that is none.
  if (newest_ == 0 || e.result.step != newest_ + 1 || std::isfinite(e.result.loss)) return e;
  const std::string run_folder = parent_folder(folder_);
  const std::optional<std::string> before = checkpoint_before(run_folder, newest_);
  return e.as(ExitCode::nonfinite, e.where(),
              "the parameters of " + folder_ + " have diverged: " +
                  (before ? "move it away and go on from " + run_folder + "/" + *before +
                                " with a lower optimizer.lr, named in checkpoint.allow_change"
                          : "no checkpoint is before it, so begin in another out_dir with a lower "
                            "optimizer.lr"));
}

}  // namespace bamtrain
