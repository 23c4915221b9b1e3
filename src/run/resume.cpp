#include "run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/closest_match.h"
#include "core/faults.h"
#include "core/json.h"
#include "core/version.h"
#include "dist/collective.h"
#include "record/named_checkpoint.h"
#include "record/run_files.h"
#include "run/host_state.h"
#include "run/init_from.h"
#include "run/init_from_optimizer.h"
#include "run/init_from_tokenizer.h"
#include "train/schedule.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::error_code& error) {
  throw system_error(ExitCode::io, path, "stat", error.value(),
                     "check the path and its permissions");
}

bool exists(const std::string& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error) refuse(path, error);
  return found;
}

/// An entry of a run's folder other than the lock, which a refused run leaves; empty if none.
std::optional<std::string> content_of(const std::string& folder) {
  std::error_code error;
  std::optional<std::string> found;
  for (fs::directory_iterator it(folder, error), end; !error && !found && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != FolderLock::kName) found = name;
  }
  if (error) refuse(folder, error);
  return found;
}

bool are_same(const std::string& a, const std::string& b) {
  std::error_code error;
  const bool same = fs::equivalent(a, b, error);
  if (error) refuse(a, error);
  return same;
}

fs::path canonical(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  if (error) refuse(path, error);
  return found;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

/// Removes the keys of the run's length from `refused` if the steps already done do not depend on
/// them. Throws Error (ExitCode::config) if they do.
void check_length(const TrainRun& run, const Checkpoint& checkpoint, const Warn& note,
                  std::vector<std::string>* refused) {
  const auto is_length = [](const std::string& key) {
    return key == "train.steps" || key == "schedule.decay_steps";
  };
  if (refused->empty() || !std::all_of(refused->begin(), refused->end(), is_length)) return;
  nlohmann::json before = checkpoint.state["config"].flatten(), now = run.resolved.flatten();
  const nlohmann::json steps_before = before["/train/steps"],
                       decay_before = before["/schedule/decay_steps"];
  if (!steps_before.is_number_integer() || !decay_before.is_number_integer()) return;
  // checkpoint.allow_change may permit these keys to change. Then the comparison below does not
  // hold.
  const nlohmann::json version = before["/config_version"];
  if (version.is_number_integer() &&
      !have_same_defaults(version.get<int64_t>(), run.config.config_version)) {
    return;
  }
  for (const char* key : {"/schedule/name", "/schedule/warmup_steps", "/schedule/decay_shape"}) {
    // Older checkpoints lack decay_shape.
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
    note(
        fmt::format("train.steps {} (before: {}), schedule.decay_steps {} ({}): learning rates "
                    "up to here are unchanged",
                    steps, earlier_steps, c.schedule.decay_steps, earlier.decay_steps));
    refused->clear();
    return;
  }
  throw Error(
      ExitCode::config, join_names(*refused),
      fmt::format(
          "the length of {} ({} steps, {} of \"wsd\" decay): its learning rates depend on it from "
          "step {} on",
          checkpoint.folder, earlier_steps, earlier.decay_steps, independent + 1),
      fmt::format("{} steps, {} of decay", steps, c.schedule.decay_steps),
      fmt::format(
          "set it back, or name it in checkpoint.allow_change: the learning rate of step {} "
          "is then {:.4g} instead of {:.4g} (a \"constant\" schedule can be extended at any "
          "step, \"wsd\" until its decay begins)",
          done + 1, c.optimizer.lr * schedule_factor(c.schedule, done, steps),
          c.optimizer.lr * schedule_factor(earlier, done, earlier_steps)));
}

/// "a.b: 1 -> 2, c: 3 -> 4 and 5 more".
std::string differences(std::vector<std::string> keys, const nlohmann::json& before,
                        const nlohmann::json& now) {
  // For a replaced mechanism, the name says more than the options.
  std::stable_partition(keys.begin(), keys.end(),
                        [](const std::string& key) { return key.ends_with(".name"); });
  constexpr size_t kMost = 4;
  const size_t shown = std::min(keys.size(), kMost);
  std::vector<std::string> out;
  for (size_t i = 0; i < shown; ++i) {
    out.push_back(keys[i] + ": " + text_at(before, keys[i]) + " -> " + text_at(now, keys[i]));
  }
  const size_t more = keys.size() - shown;
  return join_names(out) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Why checkpoint.allow_change cannot permit these keys to change, and which keys it is for; empty
/// if it can.
std::string why_fixed(const std::vector<std::string>& keys, const Checkpoint& checkpoint,
                      const Trainer& trainer) {
  for (const char* key : {"train.tokens_per_step", "data.sequence_length"}) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      return std::string(key) + " cannot change: it determines the order of the data";
    }
  }
  const SafetensorsFile weights = SafetensorsFile::open(checkpoint.model_file());
  try {
    check_tensors(weights, model_tensors(trainer.layout(), Tensor(nullptr, Dtype::f32,
                                                                  {trainer.layout().elements()})));
  } catch (const Error& e) {
    return "checkpoint.allow_change cannot help, because parameters would differ (" + e.where() +
           "): it is for keys that keep their names and shapes, such as optimizer.lr or "
           "model.norm.eps";
  }
  return "";
}

/// Sets parameters to initial values, and both parameters and optimizer state to those of
/// init_from.
nlohmann::json initialize(const TrainRun& run, const Trainer& trainer, const HostState& state,
                          Progress& progress) {
  const Tensor& master_weights = state.of(StateTensor::master_weights);
  trainer.initialize(master_weights);
  const std::string& folder = run.config.init_from.folder;
  if (folder.empty()) return nullptr;
  const Warn warn = [&](const std::string& text) { progress.note("warning: " + text); };
  check_init_from_tokenizer(run.config, warn);
  nlohmann::json read = read_init_from(run, trainer.layout(), master_weights, warn);
  progress.note("starting from the weights in " + folder);
  if (!run.config.init_from.optimizer) return read;
  const int64_t steps =
      read_init_from_optimizer(run, trainer.layout(), state.of(StateTensor::first_moments),
                               state.of(StateTensor::second_moments));
  read[kOptimizerSteps] = steps;
  progress.note(fmt::format("and from its optimizer state, after {} steps", steps));
  return read;
}

}  // namespace

bool out_dir_exists(const std::string& out_dir) { return exists(out_dir); }

void require_untouched(const std::string& out_dir) {
  if (const std::optional<std::string> found = content_of(out_dir)) {
    throw Error::fault(ExitCode::io, out_dir,
                       "another run started and ended here meanwhile, and left " + *found,
                       "run the same command again");
  }
}

std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& tell) {
  const Warn warn = [&tell](const std::string& text) { tell("warning: " + text); };
  const auto newest_in_out_dir = [&] {
    std::optional<Checkpoint> newest = newest_checkpoint(c.out_dir, warn);
    if (newest) check_run_state(*newest);
    return newest;
  };
  if (c.checkpoint.resume == "auto") return newest_in_out_dir();
  if (c.checkpoint.resume == "never") {
    if (exists(c.out_dir) && content_of(c.out_dir)) {
      throw Error(ExitCode::config, "checkpoint.resume",
                  "an empty or new out_dir, since it is \"never\"", c.out_dir + " with files",
                  "choose another out_dir, empty this one, or resume with \"auto\"");
    }
    return std::nullopt;
  }
  // A folder is where this run starts, unless the run has already continued from it.
  if (!exists(c.checkpoint.resume)) {
    const std::string meant = closest_match(c.checkpoint.resume, {"auto", "never"});
    throw Error::fault(ExitCode::checkpoint, "checkpoint.resume",
                       "no such folder: " + c.checkpoint.resume,
                       meant.empty() ? "give auto, never, or the folder of a checkpoint or a run"
                                     : "did you mean " + meant + "?");
  }
  const std::optional<Checkpoint> newest = newest_in_out_dir();
  const fs::path from = canonical(c.checkpoint.resume);
  const std::string started = newest ? newest->state.value(kStartedFrom, "") : "";
  if (is_run_folder(c.checkpoint.resume)) {
    // The run's own folder, or the one that it has already continued from.
    if (newest && are_same(c.checkpoint.resume, c.out_dir)) return newest;
    if (newest && fs::path(started).parent_path() == from) return newest;
  }
  const Checkpoint start = open_named_checkpoint(c.checkpoint.resume, tell);
  check_run_state(start);
  if (!newest || are_same(newest->folder, start.folder)) return start;
  if (started == canonical(start.folder)) return newest;
  throw Error(ExitCode::config, "checkpoint.resume",
              "an out_dir without checkpoints of another run or of later steps",
              newest->folder + ", to resume from " + start.folder,
              "choose another out_dir, or move the later checkpoints elsewhere");
}

void check_fits(const TrainRun& run, const Checkpoint& checkpoint, const Trainer& trainer,
                const Warn& note) {
  if (run.config.train.steps < checkpoint.step) {
    throw Error(ExitCode::config, "train.steps",
                fmt::format("at least the {} steps of {}", checkpoint.step, checkpoint.folder),
                std::to_string(run.config.train.steps),
                "raise it, or resume from an earlier checkpoint");
  }
  const nlohmann::json& before = checkpoint.state["config"];
  std::vector<std::string> refused = run.refused_keys(before);
  check_length(run, checkpoint, note, &refused);
  if (!refused.empty()) {
    const std::string fixed = why_fixed(refused, checkpoint, trainer);
    constexpr size_t kMostNamed = 4;
    throw Error(ExitCode::config,
                refused.size() > kMostNamed ? run.config.out_dir : join_names(refused),
                "the same values as in " + checkpoint.folder,
                "changes (" + differences(refused, before, run.resolved) + ")",
                fixed.empty() ? "set them back, name them in checkpoint.allow_change, or start a "
                                "new run in another out_dir"
                              : "set them back, or start a new run in another out_dir; " + fixed);
  }
  const auto& allow = run.config.checkpoint.allow_change;
  const bool other_data = std::find(allow.begin(), allow.end(), "data.train") != allow.end() ||
                          std::find(allow.begin(), allow.end(), "data") != allow.end();
  const nlohmann::json& data = checkpoint.state["data"];
  const std::vector<Source>& sources = trainer.training_data().shard_sources();
  const nlohmann::json now = describe_data(trainer.training_data());
  require_same_data(data, now, sources.size() == 1 ? sources[0].shards->source() : "data.train",
                    other_data, checkpoint.folder);
  if (const std::string compared = compared_data(data, now); !compared.empty()) {
    note(compared);
  }
  const auto require_count = [&](const nlohmann::json& object, const char* key, const char* path,
                                 int64_t per_step) {
    const std::string where = checkpoint.folder + "/state.json: " + path;
    const int64_t expected = checked_mul(checkpoint.step, per_step, where);
    if (object[key].get<int64_t>() == expected) return;
    throw Error(ExitCode::checkpoint, where,
                fmt::format("{}, {} per step for {} steps", expected, per_step, checkpoint.step),
                object[key].dump(), "use another checkpoint");
  };
  require_count(checkpoint.state, "tokens", "tokens", run.config.train.tokens_per_step);
  require_count(data, "windows", "data.windows", trainer.sequences_per_step());
}

/// The folder outside out_dir that the run once started from; "" if there is none.
std::string started_from(const RunConfig& c, const Checkpoint& checkpoint) {
  const fs::path folder = canonical(checkpoint.folder);
  if (exists(c.out_dir) && are_same(folder.parent_path(), c.out_dir)) {
    return checkpoint.state.value(kStartedFrom, "");
  }
  return folder;
}

/// Tells where another version of the program wrote the checkpoint. 0.1.0 did not write its own.
void note_version(const Checkpoint& checkpoint, Progress& progress) {
  const nlohmann::json& state = checkpoint.state;
  std::string writer = "0.1.0";
  if (const auto program = state.find("program"); program != state.end() && program->is_object()) {
    writer = program->value("version", writer);
  }
  if (writer == version()) return;
  progress.note(
      fmt::format("bamtrain {} wrote this checkpoint, this is {}: results may differ in rounding "
                  "(CHANGELOG.md, Numerics)",
                  writer, version()));
}

/// Refuses a run that would go on from an older checkpoint than another rank's out_dir has: each
/// node may have a folder of its own, and the nodes may have changed places.
void require_newest(const RunConfig& c, Communicator& comm) {
  int64_t own = -1, of_first = -1;
  run_on_all_ranks(comm, [&] {
    if (exists(c.out_dir)) own = newest_step(c.out_dir).value_or(-1);
  });
  of_first = own;
  comm.broadcast(&of_first, sizeof of_first, 0);
  run_on_all_ranks(comm, [&] {
    if (own <= of_first) return;
    throw Error(ExitCode::checkpoint, fmt::format("rank {}: {}", comm.rank(), c.out_dir),
                "no newer checkpoint than in rank 0's out_dir", checkpoint_name(own),
                "copy it to rank 0's node, or remove it");
  });
}

Beginning restore(const TrainRun& run, Communicator& comm, Trainer& trainer, Progress& progress) {
  Beginning beginning;
  int64_t& step = beginning.step;
  if (comm.size() > 1) require_newest(run.config, comm);
  HostState state(trainer, comm);
  run_on_rank_zero(comm, [&] {
    const auto checkpoint =
        find_checkpoint(run.config, [&](const std::string& text) { progress.note(text); });
    if (!checkpoint) {
      beginning.initialized_from = initialize(run, trainer, state, progress);
      beginning.optimizer_steps = optimizer_steps(beginning.initialized_from, "");
      return;
    }
    check_fits(run, *checkpoint, trainer, [&](const std::string& text) { progress.note(text); });
    step = checkpoint->step;
    beginning.checkpoint = checkpoint->folder;
    beginning.started_from = started_from(run.config, *checkpoint);
    beginning.initialized_from = checkpoint->state.value(kInitializedFrom, nlohmann::json());
    beginning.optimizer_steps =
        optimizer_steps(beginning.initialized_from, checkpoint->folder + "/state.json");
    beginning.best = checkpoint->state.value("best", nlohmann::json());
    const SafetensorsFile weights = SafetensorsFile::open(checkpoint->model_file());
    try {
      read_tensors(weights, state.model());
    } catch (const Error& e) {  // another model, which checkpoint.allow_change permitted
      throw e.or_else("start a new run from these weights, with init_from.folder");
    }
    read_tensors(SafetensorsFile::open(checkpoint->optimizer_file()), state.optimizer());
    progress.note(fmt::format("resuming from {} at step {}", checkpoint->folder, step));
    note_version(*checkpoint, progress);
    const TrainConfig& t = run.config.train;
    if (last_step(t) <= step) {
      progress.note(fmt::format("already at step {} of {}{}", step, last_step(t),
                                t.stop_at > 0 ? " (train.stop_at)" : ""));
    }
  });
  if (comm.size() > 1) {
    comm.broadcast(&step, sizeof step, 0);
    comm.broadcast(&beginning.optimizer_steps, sizeof beginning.optimizer_steps, 0);
  }
  state.scatter(comm);
  trainer.count_earlier_steps(beginning.optimizer_steps);
  return beginning;
}

void read_master_weights(const std::string& folder, Communicator& comm, Trainer& trainer) {
  std::optional<HostTensor> whole;
  run_on_rank_zero(comm, [&] {
    whole.emplace(trainer, StateTensor::master_weights);
    const Checkpoint checkpoint = open_checkpoint(folder);
    read_tensors(SafetensorsFile::open(checkpoint.model_file()),
                 model_tensors(trainer.layout(), whole->tensor()));
  });
  scatter(StateTensor::master_weights, whole ? &*whole : nullptr, comm, trainer);
}

}  // namespace bamtrain
