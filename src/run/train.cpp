#include "run/train.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/durable_file.h"
#include "data/shard_check.h"
#include "dist/collective.h"
#include "model/parameter_counts.h"
#include "ops/host_copy.h"
#include "record/data_wait.h"
#include "record/logs.h"
#include "record/progress.h"
#include "record/provenance.h"
#include "record/results.h"
#include "record/run_files.h"
#include "record/run_tokenizer.h"
#include "record/validation_values.h"
#include "run/agreement.h"
#include "run/datasheet_peak.h"
#include "run/host_state.h"
#include "run/peak_matmul.h"
#include "run/resume.h"
#include "run/saves.h"
#include "run/shared_saves.h"
#include "run/signals.h"
#include "train/metric_name.h"
#include "train/trainer.h"
#include "train/training_data.h"

namespace bamtrain {

namespace {

void make_out_dir(const std::string& path) {
  try {
    make_folders(path);
  } catch (const Error& e) {
    throw e.or_else("change out_dir");
  }
}

/// Throws Error if the run's last file cannot be written, which would otherwise show after all the
/// work.
void check_last_result(const std::string& path) {
  if (path.empty()) return;
  try {
    const AtomicFile tried(path);  // never committed
  } catch (const Error& e) {
    throw e.or_else("move the existing file elsewhere");
  }
}

/// Likewise for results.json, whose existing content is kept.
void check_results(const RunConfig& c) {
  const std::string path = c.out_dir + "/" + kResultsFile;
  check_last_result(path);
  const Results readable(path);
}

/// Writes config.json, anew for a run that is resumed with changes.
void write_config(const TrainRun& run) {
  AtomicFile file(run.config.out_dir + "/" + kConfigFile);
  file.write(run.config_file);
  file.commit();
}

/// Throws Error if the processes have different shards.
void compare_data(Communicator& comm, const Trainer& trainer) {
  if (comm.size() == 1) return;
  std::vector<Fact> facts;
  run_on_all_ranks(comm, [&] {
    facts = data_facts("training data", trainer.training_data().shard_sources());
    facts.push_back({"tasks of the training data",
                     describe_data(trainer.training_data()).value("tasks", nlohmann::json()).dump(),
                     ExitCode::config, "start every process with the same configuration"});
    if (trainer.validation_data() == nullptr) return;
    for (Fact& f : data_facts("validation data", trainer.validation_data()->shard_sources())) {
      facts.push_back(std::move(f));
    }
  });
  require_agreement(comm, facts);
}

/// Compares the run's shards with their manifests in the background. Null on all processes if there
/// is nothing to compare.
std::unique_ptr<ShardCheck> start_check(Communicator& comm, const Trainer& trainer, int64_t step) {
  std::vector<std::shared_ptr<const ShardSet>> sets;
  for (const Sequences* data : {&trainer.training_data(), trainer.validation_data()}) {
    if (data == nullptr) continue;
    for (const Source& s : data->shard_sources()) sets.push_back(s.shards);
  }
  auto check = std::make_unique<ShardCheck>(std::move(sets), comm.rank(), comm.size(), step);
  if (check->shards() == 0) return nullptr;
  run_on_all_ranks(comm, [&] { check->start(); });
  return check;
}

/// Ends the run if a process has found a shard that does not match its manifest. Returns whether
/// all were compared, and then prints it.
bool all_compared(const ShardCheck& check, Communicator& comm, Progress& progress) {
  run_on_all_ranks(comm, [&] { check.require_good(); });
  if (comm.any(!check.passed())) return false;
  const int64_t n = check.shards();
  progress.note(fmt::format("verified {} shard{} (SHA-256)", n, n == 1 ? "" : "s"));
  return true;
}

/// Communicator::first_rank_of_node() of each rank.
std::vector<int> first_ranks_of_nodes(Communicator& comm) {
  std::vector<double> of_ranks(static_cast<size_t>(comm.size()), 0.0);
  of_ranks[static_cast<size_t>(comm.rank())] = comm.first_rank_of_node();
  comm.sum(of_ranks.data(), comm.size());
  return {of_ranks.begin(), of_ranks.end()};
}

/// Whether any process was asked to stop before step `next`. The trigger file counts once.
bool stop_requested(Communicator& comm, const std::string& out_dir, int64_t next) {
  bool stop = stop_signalled_before(next);
  if (comm.rank() == 0) stop |= take_trigger_file(out_dir);
  return comm.any(stop);
}

/// The value of a metric (train/metric_name.h) in a line of metrics.jsonl; empty if missing.
std::optional<double> metric_of(const nlohmann::ordered_json& line, const std::string& metric) {
  const size_t slash = metric.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string result = metric.substr(0, slash), number = metric.substr(slash + 1);
  if (result == kValidationResult) {
    const auto found = line.find(result + "_" + number);
    if (found == line.end()) return std::nullopt;
    return found->get<double>();
  }
  const auto tasks = line.find("tasks");
  if (tasks == line.end() || !tasks->contains(result)) return std::nullopt;
  return (*tasks)[result][number].get<double>();
}

void tell_tasks(const nlohmann::ordered_json& tasks, int64_t step, Progress& progress) {
  for (const auto& [name, row] : tasks.items()) {
    progress.note(fmt::format("step {} {}{}", step, name, numbers_line(row)));
  }
}

/// Ends the run on all processes, which have the same loss.
void require_finite(const ClusteredMean& loss, int64_t step, const Saves& saves,
                    Communicator& comm) {
  if (std::isfinite(loss.mean)) return;
  fail_on_all_ranks(
      comm, std::make_exception_ptr(Error(ExitCode::nonfinite, fmt::format("step {}", step),
                                          "a finite validation loss", fmt::format("{}", loss.mean),
                                          "lower optimizer.lr")
                                        .and_then(saves.way_back())));
}

void put_validation(nlohmann::ordered_json* line, const Validation& pass) {
  (*line)["validation_loss"] = pass.loss.mean;
  (*line)["validation_loss_error"] = nullptr;
  if (pass.loss.error) (*line)["validation_loss_error"] = *pass.loss.error;
  if (pass.attention) (*line)["attention"] = attention_json(*pass.attention);
  if (!pass.scores) return;
  (*line)["validation_accuracy"] = pass.scores->accuracy.mean;
  (*line)["validation_exact_match"] = pass.scores->exact.mean;
}

/// The validation pass in a line of metrics.jsonl, as a result; null if it has none.
nlohmann::ordered_json validation_of(const nlohmann::ordered_json& line) {
  nlohmann::ordered_json numbers;
  for (const char* number : {"loss", "loss_error", "accuracy", "exact_match"}) {
    const auto found = line.find(std::string(kValidationResult) + "_" + number);
    if (found != line.end()) numbers[number] = *found;
  }
  if (!numbers.is_null()) numbers["step"] = line["step"];
  return numbers;
}

/// Writes the validation of a finished run to results.json; null: no validation.
void write_validation(const TrainRun& run, nlohmann::ordered_json numbers) {
  Results results(run.config.out_dir + "/" + kResultsFile);
  results.set_run(run.config.name, run.resolved);
  std::vector<std::string> names = results_of(run.config);
  if (numbers.is_null()) {
    std::erase(names, kValidationResult);
  } else {
    numbers["of"] = validation_values(run.config);
    results.set(kValidationResult, std::move(numbers));
  }
  results.arrange(names);
  results.write();
}

/// For a finished run: computes the validation if results.json lacks it or has it for other
/// settings. Uses the checkpoint that the results come from. The trainer has that checkpoint's
/// parameters afterwards.
void validate_ended(const TrainRun& run, Communicator& comm, Trainer& trainer, const Saves& saves,
                    int64_t end, Progress& progress) {
  int64_t step = end;
  bool wanted = false;  // known to rank 0, like step
  run_on_rank_zero(comm, [&] {
    Results results(run.config.out_dir + "/" + kResultsFile);
    results.set_run(run.config.name, run.resolved);  // drops those of another model
    wanted = !results.has(kValidationResult, validation_values(run.config));
    step = saves.best_step().value_or(end);
  });
  if (!comm.any(wanted)) return;
  if (comm.size() > 1) comm.broadcast(&step, sizeof step, 0);
  if (step != end) {
    read_master_weights(run.config.out_dir + "/" + checkpoint_name(step), comm, trainer);
  }
  {
    const InPhase receiving(comm.watchdog(), phases::kSaving, step);
    trainer.state().refresh();
  }
  const std::optional<Validation> pass = trainer.validate(comm, progress.evaluation("validation"));
  if (!pass) return;
  require_finite(pass->loss, step, saves, comm);
  nlohmann::ordered_json line = {{"step", step}};
  put_validation(&line, *pass);
  run_on_rank_zero(comm, [&] {
    progress.note(
        fmt::format("step {} validation loss {:.4f}, measured again", step, pass->loss.mean));
    write_validation(run, validation_of(line));
  });
}

/// Whether checkpoint.best names a metric of eval.tasks.
bool is_best_by_task(const RunConfig& c) {
  const std::string& metric = c.checkpoint.best_metric;
  return !metric.empty() && !metric.starts_with(std::string(kValidationResult) + "/");
}

}  // namespace

TrainResult train(const TrainRun& run, Communicator& comm, Backend& backend) {
  const RunConfig& c = run.config;
  // All processes measure at the same time, so that each sees the rate that it gets in training.
  const auto measure = [&] {
    return measure_peak_matmul(backend, activation_dtype(c.train.precision)) * comm.size();
  };
  std::optional<Trainer> made;
  double rate = 0;
  int64_t tasks = 0;  // in bytes
  run_on_all_ranks(comm, [&] {
    if (run.tasks != nullptr) {
      // Makes plans of its own, so it comes before the plan that the backend works with.
      const TaskMeasures::Memory memory = run.tasks->memory(backend);
      TaskMeasures::check_fits(memory, backend);
      tasks = memory.beside;
    }
    made.emplace(run.config, backend, comm.rank(), comm.size());
  });
  Trainer& trainer = *made;
  compare_data(comm, trainer);
  if (run.tasks != nullptr && comm.size() > 1) require_agreement(comm, run.tasks->facts());
  trainer.connect(comm);
  const bool first_rank = comm.rank() == 0, on_host = backend.memory().on_host();
  run_on_all_ranks(comm, [&] {
    rate = measure();
    trainer.check_memory(tasks + (first_rank && on_host ? HostState::bytes(trainer) : 0));
    trainer.commit();
  });
  const int64_t end = last_step(c.train);
  const double flops = flops_per_token(c.model, trainer.layout(), c.data.sequence_length);
  Progress notes(0, 1, 0, !first_rank);
  const std::string devices = different_names(comm, backend.name());  // empty: all the same
  if (!devices.empty()) {
    notes.note("warning: the processes compute on different devices: " + devices +
               "; the slowest sets the pace, and results differ from runs on one kind of device; "
               "ask the batch system for one kind (Slurm: --constraint)");
  }
  if (const std::string ranks = scattered_ranks(first_ranks_of_nodes(comm)); !ranks.empty()) {
    notes.note(
        "warning: ranks " + ranks +
        " are on one node, and others are between them; neighbours exchange the most gradients, so "
        "place ranks by node (mpirun: --map-by slot, Slurm: --distribution=block)");
  }
  TrainResult result;
  // A refused run must not create a folder. If there is no folder, restore finds nothing in it.
  run_on_rank_zero(comm, [&] {
    if (out_dir_exists(c.out_dir)) result.lock = std::make_unique<FolderLock>(c.out_dir);
  });
  const Beginning beginning = restore(run, comm, trainer, notes);
  const int64_t resumed = beginning.step;
  result.step = resumed;
  result.checkpoint = c.out_dir + "/" + checkpoint_name(resumed);
  // Nothing has been written yet. A signal noted by one rank stops all of them here. One that ends
  // a rank keeps the others from passing.
  defer_stop_signals(resumed < end ? resumed + 1 : 0, first_rank);
  result.interrupted = comm.any(stop_signalled());
  if (result.interrupted) return result;

  const auto note_warning = [&notes](const std::string& text) { notes.note("warning: " + text); };
  std::optional<Logs> logs;
  double seconds_before = 0;  // duration of the run's earlier parts; known to rank 0
  run_on_rank_zero(comm, [&] {
    if (!result.lock) {
      make_out_dir(c.out_dir);
      result.lock = std::make_unique<FolderLock>(c.out_dir);
      require_untouched(c.out_dir);
    }
    check_last_result(run.last_result);
    check_results(c);
    write_config(run);
    const nlohmann::json tokenizer = describe_data(trainer.training_data())["tokenizer_sha256"];
    if (!tokenizer.is_null()) keep_tokenizer(c, tokenizer, note_warning);
    record_start(c.out_dir,
                 {backend.name(), run.gpu, run.libraries, comm.size(),
                  run.resolved["train"]["precision"], count_parameters(trainer.layout())});
    logs.emplace(c, resumed, note_warning);
    seconds_before = logs->seconds();
  });
  Progress progress(resumed, end, flops, !first_rank, seconds_before);
  progress.take_peak_matmul(rate);
  if (const auto peak = datasheet_bf16_peak(run.gpu);
      peak && c.train.precision == Precision::bf16 && devices.empty()) {
    progress.set_datasheet_peak({run.gpu, *peak * comm.size()});
  }
  const auto warn = [&progress](const std::string& text) { progress.note("warning: " + text); };
  std::optional<Saves> opened;
  const bool divided = trainer.state().ownership().divided();
  const std::string apart = divided ? try_shared_file(comm, c.out_dir) : "";
  const bool together = divided && apart.empty();
  if (!apart.empty()) {
    warn(
        "not all processes can write to one file in out_dir, so rank 0 writes checkpoints alone; "
        "what stops them: " +
        apart);
  }
  run_on_all_ranks(comm,
                   [&] { opened.emplace(run, beginning, result.lock.get(), together, warn); });
  Saves& saves = *opened;
  run_on_rank_zero(comm, [&] {
    if (resumed == end || !trainer.document_start()) return;
    const auto& sources = trainer.training_data().shard_sources();
    for (const std::string& text : missing_document_starts(sources, *trainer.document_start())) {
      warn(text);
    }
  });
  // In a finished run, the last validation pass has seen the parameters.
  saves.prune(comm, resumed == end && trainer.validates());
  bool saved = resumed > 0 && c.checkpoint.resume == "auto";
  DataWait data_wait;
  std::unique_ptr<ShardCheck> check;
  bool compared = false;
  if (c.data.verify && resumed < end) check = start_check(comm, trainer, resumed);
  for (int64_t step = resumed; step < end; ++step) {
    const InPhase training(comm.watchdog(),
                           step == resumed ? phases::kFirstStep : phases::kTraining, step + 1);
    trainer.start_step(step, comm);
    if (check && !compared) compared = all_compared(*check, comm, progress);
    const int64_t done = step + 1;
    const bool last = done == end;
    const bool of_tasks = run.tasks != nullptr && run.tasks->due(done);
    // All final results come from the best checkpoint. So a step is validated if a task may make it
    // the best.
    const bool evaluate =
        last || (c.eval.every > 0 && done % c.eval.every == 0) || (of_tasks && is_best_by_task(c));
    const bool sample =
        !c.sample.prompts.empty() && (last || (c.sample.every > 0 && done % c.sample.every == 0));
    const bool logged = evaluate || of_tasks || done % c.log.every == 0;
    const bool due = c.checkpoint.every > 0 && done % c.checkpoint.every == 0;
    saved = false;
    result.step = done;
    result.interrupted = !last && stop_requested(comm, c.out_dir, done + 1);
    bool save_now = last || due || result.interrupted;
    // A device continues to work while nobody reads results.
    const bool read =
        on_host || logged || sample || save_now || trainer.in_flight() == Trainer::kMaxInFlight;
    if (!read) continue;
    const std::span<const StepResult> ended = [&] {
      try {
        return trainer.finish_steps(comm);
      } catch (const NonfiniteStep& e) {
        throw saves.explained(e);
      }
    }();
    saves.finite_until(comm, done);
    const StepResult& r = ended.back();
    progress.steps(ended);
    data_wait.steps(ended);
    if (const auto text = data_wait.take_warning(progress.seconds())) warn(*text);
    nlohmann::ordered_json line = {
        {"step", done},        {"tokens", done * c.train.tokens_per_step},
        {"loss", r.loss},      {"lr", r.lr},
        {"grad_norm", r.norm}, {"tokens_per_second", progress.tokens_per_second()},
    };
    if (c.data.train.has_tasks()) line["targets"] = r.targets;
    const double share = progress.mfu();
    if (share > 0) line["matrix_rate_share"] = share;
    line["seconds"] = progress.total_seconds();
    if (logged) line["data_wait"] = data_wait.take_mean();
    bool seen = false;  // whether a loss of the current parameters was computed
    if (evaluate) {
      trainer.state().refresh();  // waits for others as a step does
      const InPhase evaluating(comm.watchdog(), phases::kEvaluating, done);
      if (const auto pass = trainer.validate(
              comm, progress.evaluation(fmt::format("step {} validation", done)))) {
        const ClusteredMean& loss = pass->loss;
        require_finite(loss, done, saves, comm);
        seen = true;
        put_validation(&line, *pass);
        std::string scores;
        if (pass->scores) {
          const auto& [accuracy, exact] = *pass->scores;
          scores =
              fmt::format(" accuracy {:.4f}{} exact match {:.4f}{}", accuracy.mean,
                          plus_minus(accuracy.error, 4), exact.mean, plus_minus(exact.error, 4));
        }
        progress.note(fmt::format("step {} validation loss {:.4f}{} perplexity {:.2f}{}{}", done,
                                  loss.mean, plus_minus(loss.error, 4), std::exp(loss.mean),
                                  plus_minus(loss.error_of_exp(), 2), scores));
        // A device is seldom shared, and now has no spare memory.
        if (on_host && !last) progress.take_peak_matmul(measure());
      }
    }
    Tensor weights;  // all of them, where they are looked at
    const bool learned = evaluate || (due && c.log.tensorboard);
    if (of_tasks || learned || sample) {
      weights = trainer.state().assemble(StateTensor::master_weights);
    }
    if (of_tasks) {
      const InPhase evaluating(comm.watchdog(), phases::kEvaluating, done);
      std::unique_ptr<Backend> beside;
      run_on_all_ranks(comm, [&] { beside = run.beside(); });
      line["tasks"] =
          run.tasks->measure(weights, *beside, comm, done, [&](const std::string& task) {
            return progress.evaluation(fmt::format("step {} {}", done, task));
          });
      tell_tasks(line["tasks"], done, progress);
    }
    if (const auto value = metric_of(line, c.checkpoint.best_metric)) {
      save_now |= saves.is_best(comm, done, *value, validation_of(line));
    }
    std::vector<Learned> parameters;
    if (learned) parameters = mechanism_parameters(trainer, weights);
    if (evaluate) line["parameters"] = parameters_json(parameters);
    if (logged || sample || save_now) {
      const InPhase writing(comm.watchdog(), sample ? phases::kEvaluating : phases::kSaving, done);
      run_on_rank_zero(comm, [&] {
        result.lock->require_held();
        if (logged) logs->write(line);
        logs->write(done, parameters);
        if (last && trainer.validates()) {
          write_validation(run, saves.best_step() ? nlohmann::ordered_json(saves.best_validation())
                                                  : validation_of(line));
        }
        if (sample) {
          const HostCopy master_weights(backend, weights, HostCopy::Contents::downloaded);
          logs->write_samples(run.samples(done, master_weights.tensor()));
        }
        if (save_now) logs->sync(warn);
      });
    }
    if (evaluate && run.validated) {
      const InPhase evaluating(comm.watchdog(), phases::kEvaluating, done);
      run_on_rank_zero(comm, [&] { run.validated(warn); });
    }
    if (save_now) {
      saves.write(trainer, comm, done, seen);
      result.checkpoint = c.out_dir + "/" + checkpoint_name(done);
      saved = true;
    }
    if (result.interrupted) break;
  }
  progress.finish();
  if (const auto best = saves.best_step()) {
    result.best = c.out_dir + "/" + checkpoint_name(*best);
  }
  if (!saved && result.step > 0) saves.write(trainer, comm, result.step, false);
  if (resumed == end && end > 0 && trainer.validates()) {
    validate_ended(run, comm, trainer, saves, end, notes);
  }
  return result;
}

}  // namespace bamtrain
