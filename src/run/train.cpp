#include "run/train.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "core/checked.h"
#include "core/json.h"
#include "dist/together.h"
#include "model/parameter_parts.h"
#include "ops/host_copy.h"
#include "record/logs.h"
#include "record/progress.h"
#include "record/provenance.h"
#include "record/run_files.h"
#include "run/folder_lock.h"
#include "run/init_from.h"
#include "run/matrix_rate.h"
#include "run/resume.h"
#include "run/signals.h"
#include "train/schedule.h"
#include "train/trainer.h"

namespace bamtrain {

namespace {

void make_out_dir(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw Error(ExitCode::io, path, "a folder that can be created", error.message(),
                "change out_dir or its permissions");
  }
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

/// Of the keys that differ and must not, takes out those that say how long the run is, where the
/// steps already done do not depend on it. Error (ExitCode::config) where they do.
void check_length(const TrainRun& run, const Checkpoint& checkpoint, Progress& progress,
                  std::vector<std::string>* refused) {
  const auto is_length = [](const std::string& key) {
    return key == "train.steps" || key == "schedule.decay_steps";
  };
  if (refused->empty() || !std::all_of(refused->begin(), refused->end(), is_length)) return;
  nlohmann::json before = checkpoint.state["config"].flatten(), now = run.resolved.flatten();
  const nlohmann::json steps_before = before["/train/steps"],
                       decay_before = before["/schedule/decay_steps"];
  if (!steps_before.is_number_integer() || !decay_before.is_number_integer()) return;
  for (const char* key :
       {"/config_version", "/schedule/name", "/schedule/warmup_steps", "/schedule/decay_shape"}) {
    // Allowed to change, but not the past for it; older checkpoints know no decay_shape.
    if (before.contains(key) && before[key] != now[key]) return;
  }
  const RunConfig& c = run.config;
  const int64_t done = checkpoint.step, steps = c.train.steps;
  const auto earlier_steps = steps_before.get<int64_t>();
  ScheduleConfig earlier = c.schedule;
  earlier.decay_steps = decay_before.get<int64_t>();
  const int64_t independent = std::min(steps_independent_of_length(earlier, earlier_steps),
                                       steps_independent_of_length(c.schedule, steps));
  if (done <= independent) {
    progress.note(
        fmt::format("train.steps {} (before: {}), schedule.decay_steps {} ({}): the "
                    "learning rates so far are the same",
                    steps, earlier_steps, c.schedule.decay_steps, earlier.decay_steps));
    refused->clear();
    return;
  }
  throw Error(
      ExitCode::config, join_names(*refused),
      fmt::format(
          "the length that {} was trained for ({} steps, {} of decay at the end of \"wsd\"): "
          "from step {} on its learning rates depend on it",
          checkpoint.folder, earlier_steps, earlier.decay_steps, independent + 1),
      fmt::format("{} steps, {} of decay", steps, c.schedule.decay_steps),
      fmt::format(
          "set it back, or name it in checkpoint.allow_change: the learning rate of step {} "
          "is then {:.4g} instead of {:.4g} (a \"constant\" schedule can be extended at any "
          "step, \"wsd\" until its decay begins)",
          done + 1, c.optimizer.lr * schedule_factor(c.schedule, done, steps),
          c.optimizer.lr * schedule_factor(earlier, done, earlier_steps)));
}

int64_t last_step(const TrainConfig& t) { return t.stop_at > 0 ? t.stop_at : t.steps; }

/// "a.b: 1 -> 2, c: 3 -> 4 and 5 more".
std::string differences(const std::vector<std::string>& keys, const nlohmann::json& before,
                        const nlohmann::json& now) {
  constexpr size_t kMost = 4;
  const size_t shown = std::min(keys.size(), kMost);
  std::vector<std::string> out;
  for (size_t i = 0; i < shown; ++i) {
    out.push_back(keys[i] + ": " + text_at(before, keys[i]) + " -> " + text_at(now, keys[i]));
  }
  const size_t more = keys.size() - shown;
  return join_names(out) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Why checkpoint.allow_change cannot let these keys change, and which it is for; empty where it
/// can.
std::string why_fixed(const std::vector<std::string>& keys, const Checkpoint& checkpoint,
                      const Trainer& trainer) {
  for (const char* key : {"train.tokens_per_step", "data.sequence_length"}) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      return std::string(key) + " never changes: it places the data";
    }
  }
  const SafetensorsFile weights = SafetensorsFile::open(checkpoint.model_file());
  try {
    check_tensors(weights, model_tensors(trainer.layout(), trainer.masters()));
  } catch (const Error& e) {
    return "checkpoint.allow_change cannot help, because the parameters would be others (" +
           e.where() +
           "): it is for keys that leave their names and shapes as they are, such as optimizer.lr "
           "or model.norm.eps";
  }
  return "";
}

/// REQUIRES: check_run_state has accepted the checkpoint.
void check_fits(const TrainRun& run, const Checkpoint& checkpoint, const Trainer& trainer,
                Progress& progress) {
  if (run.config.train.steps < checkpoint.step) {
    throw Error(ExitCode::config, "train.steps",
                fmt::format("at least the {} steps of {}", checkpoint.step, checkpoint.folder),
                std::to_string(run.config.train.steps),
                "raise it, or resume from an earlier checkpoint");
  }
  const nlohmann::json& before = checkpoint.state["config"];
  std::vector<std::string> refused = run.refused_keys(before);
  check_length(run, checkpoint, progress, &refused);
  if (!refused.empty()) {
    const std::string fixed = why_fixed(refused, checkpoint, trainer);
    throw Error(ExitCode::config, join_names(refused),
                "the values that " + checkpoint.folder + " was trained with",
                "others (" + differences(refused, before, run.resolved) + ")",
                fixed.empty() ? "set them back, name them in checkpoint.allow_change, or start a "
                                "new run in another out_dir"
                              : "set them back, or start a new run in another out_dir; " + fixed);
  }
  const auto& allow = run.config.checkpoint.allow_change;
  const bool other_data = std::find(allow.begin(), allow.end(), "data.train") != allow.end() ||
                          std::find(allow.begin(), allow.end(), "data") != allow.end();
  const nlohmann::json& data = checkpoint.state["data"];
  const std::vector<Source>& sources = trainer.training_data().sources();
  require_same_data(data, describe_data(sources),
                    sources.size() > 1 ? "data.train" : sources[0].shards->source(), other_data,
                    checkpoint.folder);
  const auto require_count = [&](const nlohmann::json& object, const char* key, const char* path,
                                 int64_t per_step) {
    const std::string where = checkpoint.folder + "/state.json: " + path;
    const int64_t expected = checked_mul(checkpoint.step, per_step, where);
    if (object[key].get<int64_t>() == expected) return;
    throw Error(ExitCode::checkpoint, where,
                fmt::format("{}, {} for each of {} steps", expected, per_step, checkpoint.step),
                object[key].dump(), "use another checkpoint");
  };
  require_count(checkpoint.state, "tokens", "tokens", run.config.train.tokens_per_step);
  require_count(data, "windows", "data.windows", trainer.sequences_per_step());
}

/// Masters and moments in host memory.
class HostState {
 public:
  HostState(Trainer& trainer, HostCopy::Contents contents)
      : masters_(trainer.backend(), trainer.masters(), contents),
        first_(trainer.backend(), trainer.optimizer().first_moments(), contents),
        second_(trainer.backend(), trainer.optimizer().second_moments(), contents) {}

  std::vector<NamedTensor> model(const ParameterLayout& layout) const {
    return model_tensors(layout, masters_.tensor());
  }
  std::vector<NamedTensor> optimizer(const ParameterLayout& layout) const {
    return optimizer_tensors(layout, first_.tensor(), second_.tensor());
  }
  std::array<Tensor, 3> tensors() const {
    return {masters_.tensor(), first_.tensor(), second_.tensor()};
  }
  void upload() {
    masters_.upload();
    first_.upload();
    second_.upload();
  }

 private:
  HostCopy masters_, first_, second_;
};

/// Where a run continues.
struct Beginning {
  int64_t step = 0;
  // Known to rank 0:
  std::string started_from;         // see run/resume.h
  nlohmann::json initialized_from;  // see run/init_from.h; null: initial values
};

/// Parameters to their initial values, or to those that init_from names.
nlohmann::json initialize(const TrainRun& run, Trainer& trainer, Progress& progress) {
  trainer.initialize();
  const std::string& folder = run.config.init_from.folder;
  if (folder.empty()) return nullptr;
  HostCopy masters(trainer.backend(), trainer.masters(), HostCopy::Contents::downloaded);
  nlohmann::json read =
      read_init_from(run, trainer.layout(), masters.tensor(),
                     [&](const std::string& text) { progress.note("warning: " + text); });
  masters.upload();
  progress.note("starting from the weights in " + folder);
  return read;
}

/// Masters, moments and step of a checkpoint on all processes; step 0 where the run starts afresh.
Beginning restore(const TrainRun& run, Communicator& comm, Trainer& trainer, Progress& progress) {
  Beginning beginning;
  int64_t& step = beginning.step;
  on_first_rank(comm, [&] {
    const auto checkpoint = find_checkpoint(
        run.config, [&](const std::string& text) { progress.note("warning: " + text); });
    if (!checkpoint) {
      beginning.initialized_from = initialize(run, trainer, progress);
      return;
    }
    check_fits(run, *checkpoint, trainer, progress);
    step = checkpoint->step;
    beginning.started_from = started_from(run.config, *checkpoint);
    beginning.initialized_from = checkpoint->state.value(kInitializedFrom, nlohmann::json());
    HostState state(trainer, HostCopy::Contents::undefined);
    const SafetensorsFile weights = SafetensorsFile::open(checkpoint->model_file());
    try {
      read_tensors(weights, state.model(trainer.layout()));
    } catch (const Error& e) {  // another model, which checkpoint.allow_change let pass
      throw e.or_else("begin a run of its own from these weights, with init_from.folder");
    }
    read_tensors(SafetensorsFile::open(checkpoint->optimizer_file()),
                 state.optimizer(trainer.layout()));
    state.upload();
    progress.note(fmt::format("resuming from {} at step {}", checkpoint->folder, step));
    const TrainConfig& t = run.config.train;
    if (last_step(t) <= step) {
      progress.note(fmt::format("no step is left: {} is {}",
                                t.stop_at > 0 ? "train.stop_at" : "train.steps", last_step(t)));
    }
  });
  if (comm.size() > 1) {
    comm.broadcast(&step, sizeof step, 0);
    HostState state(trainer, HostCopy::Contents::downloaded);
    for (const Tensor& t : state.tensors()) comm.broadcast(t.data, t.bytes(), 0);
    state.upload();
  }
  return beginning;
}

void save(const TrainRun& run, Communicator& comm, Trainer& trainer, int64_t step,
          const Beginning& beginning, Progress& progress) {
  on_first_rank(comm, [&] {
    trainer.check_finite(step);
    CheckpointContents contents;
    const HostState host(trainer, HostCopy::Contents::downloaded);
    contents.model = host.model(trainer.layout());
    contents.optimizer = host.optimizer(trainer.layout());
    contents.state["config"] = run.resolved;
    contents.state["data"] = describe_data(trainer.training_data().sources());
    contents.state["data"]["windows"] = step * trainer.sequences_per_step();
    contents.state["program"] = this_program();
    contents.state["tokens"] = step * run.config.train.tokens_per_step;
    if (!beginning.started_from.empty()) contents.state[kStartedFrom] = beginning.started_from;
    if (!beginning.initialized_from.is_null()) {
      contents.state[kInitializedFrom] = beginning.initialized_from;
    }
    save_checkpoint(run.config.out_dir, step, contents);
    prune_checkpoints(run.config.out_dir, run.config.checkpoint.keep,
                      run.config.checkpoint.keep_every,
                      [&](const std::string& text) { progress.note("warning: " + text); });
  });
}

/// Whether any process was asked to stop. The trigger file is obeyed once.
bool stop_requested(Communicator& comm, const std::string& out_dir) {
  bool stop = stop_signalled();
  if (comm.rank() == 0) stop |= take_trigger_file(out_dir);
  return comm.any(stop);
}

}  // namespace

TrainResult train(const TrainRun& run, Communicator& comm, Backend& backend) {
  const RunConfig& c = run.config;
  // Every process computes, and measures while the others do: the rate of all is what they share.
  const auto measure = [&] {
    return measure_matrix_rate(backend, activation_dtype(c.train.precision)) * comm.size();
  };
  std::optional<Trainer> made;
  double rate = 0;
  together(comm, [&] { made.emplace(run.config, backend, comm.rank(), comm.size()); });
  Trainer& trainer = *made;
  trainer.connect(comm);
  together(comm, [&] {
    rate = measure();
    trainer.commit();
  });
  const bool first_rank = comm.rank() == 0, on_host = backend.memory().on_host();
  const int64_t end = last_step(c.train);
  const double flops = flops_per_token(c.model, trainer.layout(), c.data.sequence_length);
  Progress notes(0, 1, 1, 0, !first_rank);
  if (const std::string names = different_names(comm, backend.name()); !names.empty()) {
    notes.note("warning: the processes compute on different devices: " + names +
               "; the slowest sets the pace, and the bits are those of no single kind");
  }
  const Beginning beginning = restore(run, comm, trainer, notes);
  const int64_t resumed = beginning.step;
  TrainResult result;
  result.step = resumed;
  result.checkpoint = c.out_dir + "/" + checkpoint_name(resumed);
  // Nothing was written so far. A signal that one rank has noted stops all of them here; one that
  // ends a rank keeps the others from passing.
  defer_stop_signals();
  result.interrupted = comm.any(stop_signalled());
  if (result.interrupted) return result;

  std::optional<FolderLock> lock;
  std::optional<Logs> logs;
  double seconds_before = 0;  // of the run's earlier parts; known to rank 0
  on_first_rank(comm, [&] {
    make_out_dir(c.out_dir);
    lock.emplace(c.out_dir);
    record_start(c.out_dir,
                 {backend.name(), run.gpu, run.libraries, comm.size(),
                  run.resolved["train"]["precision"], count_parameters(trainer.layout())});
    logs.emplace(c, resumed);
    seconds_before = logs->seconds();
  });
  Progress progress(resumed, end, c.train.tokens_per_step, flops, !first_rank, seconds_before);
  progress.take_matrix_rate(rate);
  bool saved = resumed > 0 && c.checkpoint.resume == "auto";
  for (int64_t step = resumed; step < end; ++step) {
    trainer.start_step(step, comm);
    const int64_t done = step + 1;
    const bool last = done == end;
    const bool evaluate = last || (c.eval.every > 0 && done % c.eval.every == 0);
    const bool sample =
        !c.sample.prompts.empty() && (last || (c.sample.every > 0 && done % c.sample.every == 0));
    const bool logged = evaluate || done % c.log.every == 0;
    const bool due = c.checkpoint.every > 0 && done % c.checkpoint.every == 0;
    saved = false;
    result.step = done;
    result.interrupted = !last && stop_requested(comm, c.out_dir);
    const bool save_now = last || due || result.interrupted;
    // A device works on while nobody asks for results.
    const bool read =
        on_host || logged || sample || save_now || trainer.unread() == Trainer::kUnread;
    if (!read) continue;
    const std::span<const StepResult> ended = trainer.finish_steps(comm);
    const StepResult& r = ended.back();
    progress.steps(ended);
    nlohmann::ordered_json line = {
        {"step", done},        {"tokens", done * c.train.tokens_per_step},
        {"loss", r.loss},      {"lr", r.lr},
        {"grad_norm", r.norm}, {"tokens_per_second", progress.tokens_per_second()},
    };
    const double share = progress.matrix_rate_share();
    if (share > 0) line["matrix_rate_share"] = share;
    line["seconds"] = progress.total_seconds();
    if (evaluate) {
      if (const auto pass = trainer.validate(comm)) {
        const ClusteredMean& loss = pass->loss;
        if (!std::isfinite(loss.mean)) {
          fail_together(comm, std::make_exception_ptr(
                                  Error(ExitCode::nonfinite, fmt::format("step {}", done),
                                        "a finite validation loss", fmt::format("{}", loss.mean),
                                        "lower optimizer.lr and resume from the last checkpoint")));
        }
        line["validation_loss"] = loss.mean;
        line["validation_loss_error"] = nullptr;
        if (loss.error) line["validation_loss_error"] = *loss.error;
        if (pass->attention) line["attention"] = attention_json(*pass->attention);
        progress.note(fmt::format("step {} validation loss {:.4f}{} perplexity {:.2f}{}", done,
                                  loss.mean, plus_minus(loss.error, 4), std::exp(loss.mean),
                                  plus_minus(loss.error_of_exp(), 2)));
        // A device is seldom shared, and has no memory to spare for it now.
        if (on_host && !last) progress.take_matrix_rate(measure());
      }
    }
    std::vector<Learned> parameters;
    if (evaluate || (due && c.log.tensorboard)) parameters = mechanism_parameters(trainer);
    if (evaluate) line["parameters"] = parameters_json(parameters);
    if (logged || sample || save_now) {
      on_first_rank(comm, [&] {
        if (logged) logs->write(line);
        logs->write(done, parameters);
        if (sample) {
          const HostCopy masters(backend, trainer.masters(), HostCopy::Contents::downloaded);
          logs->write_samples(run.samples(done, masters.tensor()));
        }
        if (save_now) logs->sync();
      });
    }
    if (evaluate && first_rank && run.validated) {
      run.validated([&](const std::string& text) { progress.note("warning: " + text); });
    }
    if (save_now) {
      save(run, comm, trainer, done, beginning, progress);
      result.checkpoint = c.out_dir + "/" + checkpoint_name(done);
      saved = true;
    }
    if (result.interrupted) break;
  }
  progress.finish();
  if (!saved && result.step > 0) {
    save(run, comm, trainer, result.step, beginning, progress);
  }
  return result;
}

}  // namespace bamtrain
