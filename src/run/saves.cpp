#include "run/saves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/durable_file.h"
#include "data/task_values.h"
#include "dist/collective.h"
#include "record/provenance.h"
#include "record/run_files.h"
#include "record/validation_values.h"
#include "run/host_state.h"
#include "run/init_from.h"
#include "run/shared_saves.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

const char* mode_of(const CheckpointConfig& c) { return c.best_is_highest ? "max" : "min"; }

/// What the metric is measured on; values on something else cannot be compared.
nlohmann::json measured_on(const RunConfig& c) {
  const std::string& metric = c.checkpoint.best_metric;
  const std::string result = metric.substr(0, metric.rfind('/'));
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (const std::string& name : results_of(e)) {
      if (name != result) continue;
      return std::visit([](const auto& request) { return request_values(request); }, e.request);
    }
  }
  return validation_values(c);
}

/// Whether the run measures checkpoint.best at this step, wherever it stops (train.stop_at).
bool is_measured_at(const RunConfig& c, int64_t step) {
  const std::string& metric = c.checkpoint.best_metric;
  const std::string result = metric.substr(0, metric.rfind('/'));
  int64_t every = c.eval.every;
  for (const TaskEvaluation& e : c.eval.tasks) {
    const std::vector<std::string> names = results_of(e);
    if (std::find(names.begin(), names.end(), result) != names.end()) every = e.every;
  }
  return step == c.train.steps || (every > 0 && step % every == 0);
}

/// Why the results cannot come from the checkpoint of this step; empty if they can.
std::string not_to_be_had(const std::string& out_dir, int64_t step) {
  if (!has_checkpoint(out_dir, step)) return "is not in " + out_dir;
  try {
    open_checkpoint(out_dir + "/" + checkpoint_name(step));
  } catch (const Error& e) {
    if (e.code() != ExitCode::checkpoint) throw;
    return fmt::format("is damaged ({})", e.what());
  }
  return "";
}

}  // namespace

Saves::Saves(const TrainRun& run, const Beginning& beginning, const FolderLock* lock, bool together,
             Warn warn)
    : run_(run),
      beginning_(beginning),
      lock_(lock),
      together_(together),
      warn_(std::move(warn)),
      newest_(beginning.step),
      folder_(beginning.checkpoint) {
  const CheckpointConfig& c = run_.config.checkpoint;
  const nlohmann::json& best = beginning.best;
  if (c.best_metric.empty()) return;
  if (lock_) of_ = measured_on(run_.config);
  if (best.is_null()) return;
  const auto step = best["step"].get<int64_t>();
  const bool same =
      best["metric"] == c.best_metric && best["mode"] == mode_of(c) && best["of"] == of_;
  std::string lost = "was chosen by another metric";
  const bool at_stop = best.value("at_stop", false);
  if (same && at_stop && step != last_step(run_.config.train)) {
    lost = "was where the run had stopped";
  } else if (same) {
    lost = not_to_be_had(run_.config.out_dir, step);
  }
  if (lost.empty()) {
    best_ = {step, best["value"].get<double>(), best["validation"], at_stop};
    return;
  }
  warn_(fmt::format("the best checkpoint so far, of step {}, {}; starting the search again", step,
                    lost));
}

std::optional<int64_t> Saves::best_step() const {
  return best_ ? std::optional(best_->step) : std::nullopt;
}

bool Saves::is_best(Communicator& comm, int64_t step, double value, nlohmann::json validation) {
  const bool highest = run_.config.checkpoint.best_is_highest;
  // Where a run is stopped, its results come from the best checkpoint of the full run so far, or
  // else from the last.
  const bool at_stop = !is_measured_at(run_.config, step), counts = !best_ || !at_stop;
  const bool better = std::isfinite(value) && counts &&
                      (!best_ || (highest ? value > best_->value : value < best_->value));
  // Only rank 0 knows the best value so far.
  const bool best = comm.any(comm.rank() == 0 && better);
  if (best) best_ = {step, value, std::move(validation), at_stop};
  return best;
}

void Saves::write(Trainer& trainer, Communicator& comm, int64_t step, bool seen) {
  const RunConfig& c = run_.config;
  const InPhase saving(comm.watchdog(), phases::kSaving, step);
  const bool finite = !comm.any(!trainer.state().is_finite());
  run_on_rank_zero(comm, [&] {
    if (!finite) {
      throw Error(ExitCode::nonfinite, fmt::format("step {}", step),
                  "finite parameters and optimizer state to save", "NaN or infinity",
                  "lower optimizer.lr")
          .and_then(way_back());
    }
  });
  if (together_ && !write_together(trainer, comm, step)) {
    together_ = false;
    warn_(c.out_dir +
          " does not keep what several processes write to one file, so rank 0 writes checkpoints "
          "alone from here on");
  }
  if (!together_) write_alone(trainer, comm, step);
  run_on_rank_zero(comm, [&] {
    prune_here(seen, together_ ? std::optional(step) : std::nullopt);
    folder_ = c.out_dir + "/" + checkpoint_name(step);
  });
  newest_ = step;
  seen_ = seen;
}

/// Returns whether the files have what the processes wrote.
bool Saves::write_together(const Trainer& trainer, Communicator& comm, int64_t step) {
  const std::string& out_dir = run_.config.out_dir;
  CheckpointContents contents = outline_of(trainer);
  CheckpointSums own;
  run_on_rank_zero(comm, [&] {
    lock_->require_held();
    contents.state = state_of(trainer, step);
    own = begin_checkpoint(out_dir, step, contents, warn_);
  });
  std::exception_ptr failure;
  try {
    const CheckpointSums part = write_part(
        out_dir, step, contents, [&](CheckpointPart& files) { write_own(trainer, files); });
    own.model += part.model;
    own.optimizer += part.optimizer;
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  // Not before all others have ended, whose files are open.
  if (comm.any(failure != nullptr)) {
    run_on_rank_zero(comm, [&] { abandon_checkpoint(out_dir, step); });
  }
  run_on_all_ranks(comm, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  const CheckpointSums sums = sum_over_ranks(comm, own);
  bool kept = true;
  run_on_rank_zero(comm, [&] {
    lock_->require_held();
    kept = end_checkpoint(out_dir, step, contents, sums);
  });
  return !comm.any(!kept);
}

void Saves::write_alone(Trainer& trainer, Communicator& comm, int64_t step) {
  HostState host(trainer, comm);
  host.gather(comm);
  run_on_rank_zero(comm, [&] {
    lock_->require_held();
    save_checkpoint(run_.config.out_dir, step,
                    {host.model(), host.optimizer(), state_of(trainer, step)}, warn_);
  });
}

nlohmann::json Saves::state_of(const Trainer& trainer, int64_t step) const {
  const RunConfig& c = run_.config;
  nlohmann::json state;
  state["config"] = run_.resolved;
  state["data"] = describe_data(trainer.training_data());
  state["data"]["windows"] = step * trainer.sequences_per_step();
  state["program"] = this_program();
  state["tokens"] = step * c.train.tokens_per_step;
  if (!beginning_.started_from.empty()) state[kStartedFrom] = beginning_.started_from;
  if (!beginning_.initialized_from.is_null()) {
    state[kInitializedFrom] = beginning_.initialized_from;
  }
  if (best_) {
    state["best"] = {{"metric", c.checkpoint.best_metric},
                     {"mode", mode_of(c.checkpoint)},
                     {"step", best_->step},
                     {"value", best_->value},
                     {"of", of_},
                     {"validation", best_->validation}};
    if (best_->at_stop) state["best"]["at_stop"] = true;
  }
  return state;
}

void Saves::finite_until(Communicator& comm, int64_t step) {
  if (newest_ == 0 || seen_ || step <= newest_) return;
  seen_ = true;
  prune(comm, true);
}

void Saves::prune(Communicator& comm, bool seen) {
  const InPhase saving(comm.watchdog(), phases::kSaving, newest_);
  run_on_rank_zero(comm, [&] { prune_here(seen); });
}

void Saves::prune_here(bool seen, std::optional<int64_t> read_back) const {
  lock_->require_held();
  const CheckpointConfig& c = run_.config.checkpoint;
  prune_checkpoints(run_.config.out_dir, c.keep + (seen ? 0 : 1), c.keep_every, best_step(), warn_,
                    read_back);
}

Error Saves::explained(const NonfiniteStep& e) const {
  // If the loss is finite, it is this step's gradient that is not.
  if (newest_ == 0 || e.result.step != newest_ + 1 || std::isfinite(e.result.loss)) {
    return e.and_then(way_back());
  }
  const std::string run_folder = parent_folder(folder_);
  const std::optional<std::string> before = checkpoint_before(run_folder, newest_);
  return e.as(ExitCode::nonfinite, e.where(),
              "the parameters of " + folder_ + " have diverged: " +
                  (before ? "move it elsewhere and resume from " + run_folder + "/" + *before +
                                " with a lower optimizer.lr, named in checkpoint.allow_change"
                          : "there is no earlier checkpoint, so start in another out_dir with a "
                            "lower optimizer.lr"));
}

std::string Saves::way_back() const {
  if (newest_ == 0) return "start again: no checkpoint was saved yet (checkpoint.every)";
  return "resume from " + folder_ + ", which is intact (checkpoint.allow_change)";
}

}  // namespace bamtrain
