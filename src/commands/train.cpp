#include "commands/train.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/backend.h"
#include "commands/begun_config.h"
#include "commands/eval.h"
#include "commands/failure.h"
#include "commands/load_checkpoint.h"
#include "commands/report.h"
#include "commands/samples.h"
#include "config/changes.h"
#include "config/schema.h"
#include "core/join.h"
#include "core/parallel.h"
#include "core/print_message.h"
#include "core/standard_output.h"
#include "core/utf8.h"
#include "core/wait_policy.h"
#include "dist/agreement.h"
#include "dist/collective.h"
#include "eval/perplexity.h"
#include "model/parameter_counts.h"
#include "record/perplexity_result.h"
#include "record/progress.h"
#include "record/results.h"
#include "record/validation_values.h"
#include "run/agreement.h"
#include "run/saves.h"
#include "run/signals.h"
#include "run/task_measures.h"
#include "run/train.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

/// Removes lengths that no document has from the final evaluation and returns a message about them.
/// Removes the evaluation if no length remains. Throws the Errors that the evaluation would.
std::string leave_out_final_lengths(RunConfig* c, std::optional<EvalArguments>* last) {
  const ShardSet shards = ShardSet::open(c->data.val, c->model.vocab);
  PerplexityRequest request = request_of(**last, *c, shards);
  const std::string left_out =
      c->eval.require_all_lengths ? "" : leave_out_lengths(shards, &request);
  if (!left_out.empty()) {
    (*last)->lengths = request.lengths;
    c->eval.lengths = request.lengths;
  }
  if (request.lengths.empty()) {
    last->reset();
  } else {
    check_perplexity_request(shards, request);
  }
  if (left_out.empty()) return "";
  return "eval.lengths " + left_out + " (eval.require_all_lengths makes this an error)";
}

/// Checks the memory of the evaluation at the end of the run, which has the device to itself.
void check_final_memory(const RunConfig& c, Backend& backend) {
  const ScoredModel model = {
      c.model, c.data.sequence_length, backend, activation_dtype(c.train.precision), {}};
  check_memory(backend.memory(), {c.model, c.data.sequence_length},
               perplexity_bytes(model, c.eval.lengths),
               "memory of the final evaluation (eval.lengths)", "leave the longest out");
}

/// Adds the results of perplexity against length to those of the run.
void add_perplexity(const std::string& file, Results* results) {
  const nlohmann::json all = perplexity_json(file);
  for (const std::string& protocol : kPerplexityResults) {
    if (!all.contains(protocol)) continue;
    for (const nlohmann::json& row : all[protocol]) {
      nlohmann::ordered_json numbers = row;
      for (const char* key : {"length", "targets", "sums"}) numbers.erase(key);
      numbers["step"] = all["step"];
      results->set(result_at(protocol, row["length"].get<int64_t>()), std::move(numbers));
    }
  }
}

/// Names the measurements that only a run with steps left can make and that these results are
/// missing; empty if there are none. Removes a result of other settings.
std::string missing_results(const RunConfig& c, const TrainResult& result, Results* results) {
  std::vector<std::string> names = results_of(c), missing;
  if (!c.checkpoint.best_metric.empty() && result.best.empty()) {
    missing.push_back("the best checkpoint by " + c.checkpoint.best_metric);
  }
  if (c.data.validates() && !results->has(kValidationResult, validation_values(c))) {
    missing.emplace_back(kValidationResult);
    std::erase(names, kValidationResult);
  }
  results->arrange(names);  // in the config's order, not the order of measurement
  return join(missing, " and ");
}

/// --resume as a --set argument. State files are JSON, which only holds UTF-8 text.
std::string resume_override(const std::string& resume) {
  if (first_invalid_utf8(resume) != std::string_view::npos) {
    throw Error::fault(ExitCode::usage, "--resume", "not valid UTF-8",
                       "rename the folder, or link to it by another name");
  }
  return "checkpoint.resume=" + nlohmann::json(resume).dump();
}

RunConfig config_of(const TrainArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.resume.empty()) overrides.push_back(resume_override(arguments.resume));
  return begun_config(arguments.config, overrides);
}

/// The text of config.json. How this start resumes is no part of the run.
std::string config_file(const RunConfig& config) {
  nlohmann::ordered_json out = resolved_json(config);
  out["checkpoint"]["resume"] = CheckpointConfig{}.resume;
  return out.dump(2) + "\n";
}

/// Where a configuration names no version: which one was taken.
std::string version_taken(const RunConfig& c, const std::string& file) {
  if (c.names_version) return "";
  const bool newest = c.config_version == kConfigVersion;
  return fmt::format("config_version: {}, {}, as {} names none", c.config_version,
                     newest ? "the newest" : "that of the run to resume", file);
}

}  // namespace

std::vector<CLI::Option*> add_training_options(CLI::App& app, TrainArguments& arguments,
                                               const std::string& config) {
  constexpr const char* kTraining = "Training";
  std::vector<CLI::Option*> out = {
      app.add_option(config, arguments.config, "run configuration (JSON): train this run")
          ->type_name("FILE"),
      app.add_option("--set", arguments.overrides,
                     "override config keys (a.b.c=value, JSON or a bare text); repeatable")
          ->type_name("KEY=VALUE ...")
          ->take_all()
          ->allow_extra_args(false),  // core/list_arguments.h repeats the option
      app.add_option("--resume", arguments.resume,
                     "auto, never, or the folder of a checkpoint or a run: checkpoint.resume")
          ->type_name("HOW"),
      app.add_flag("--dry-run", arguments.dry_run,
                   "check config, data and memory, and print what the run needs"),
      app.add_flag("--print-config", arguments.print_config,
                   "print the configuration with all keys, and end")};
  for (CLI::Option* option : out) option->group(kTraining);
  return out;
}

double peer_timeout_of(const TrainArguments& arguments) {
  try {
    return config_of(arguments).train.peer_timeout;
  } catch (const std::exception&) {
    return TrainConfig().peer_timeout;
  }
}

int print_config(const TrainArguments& arguments) {
  const RunConfig c = config_of(arguments);
  if (const std::string taken = version_taken(c, arguments.config); !taken.empty()) {
    print_message(stderr, taken);
  }
  fmt::print("{}\n", resolved_json(c).dump(2));
  return 0;
}

int run_train(const TrainArguments& arguments, Communicator& comm) {
  const bool first = comm.rank() == 0;
  TrainRun run;
  std::unique_ptr<Backend> backend;
  std::optional<EvalArguments> last;
  std::optional<Samples> samples;
  std::optional<TaskMeasures> tasks;
  std::string parameters, left_out;  // a description; a warning
  Machinery machinery;
  // A dry run prints everything that needs no data before it fails with an error in the data.
  std::exception_ptr of_data;
  const auto with_data = [&](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      if (!arguments.dry_run || e.code() != ExitCode::data) throw;
      if (!of_data) of_data = std::current_exception();
    }
  };
  if (comm.size() > 1) {
    require_agreement(comm, program_facts(arguments.dry_run ? "--dry-run" : "training"));
  }
  run_on_all_ranks(comm, [&] {
    run.config = config_of(arguments);
    comm.set_peer_timeout(run.config.train.peer_timeout);
    run.resolved = resolved_json(run.config);
    run.config_file = config_file(run.config);
  });
  require_agreement(comm, config_facts(run.resolved));
  run_on_all_ranks(comm, [&] {
    parameters =
        describe_parameters(ParameterLayout(run.config.model, run.config.data.sequence_length));
    run.beside = [&run, local_rank = comm.local_rank()] {
      return make_backend(run.config.device, run.config.train.precision, local_rank);
    };
    if (arguments.dry_run) backend = make_plan_without_device(run.config.device);
    run.has_device = backend == nullptr;
    if (run.has_device) {
      backend = run.beside();
      machinery = machinery_of(*backend, comm.size());
    }
    run.gpu = machinery.gpu;
    run.libraries = machinery.libraries;
    if (first) run.report_bytes = LiveReport::bytes(run.config);
    with_data([&] { tasks.emplace(run.config, *backend); });
    if (tasks) run.tasks = &*tasks;
    last = final_evaluation(run.config);
    if (!first) return;
    with_data([&] {
      // Only rank 0 runs the final evaluation. Its checks run here, hours earlier.
      if (!last) return;
      left_out = leave_out_final_lengths(&run.config, &last);
      if (last) check_final_memory(run.config, *backend);
    });
    with_data([&] {
      if (run.config.sample.prompts.empty()) return;
      samples.emplace(run.config);
      run.sample_bytes = samples->bytes();
      run.samples = [&samples](int64_t step, const Tensor& master_weights) {
        return samples->lines(step, master_weights);
      };
    });
  });
  const bool on_host = backend->memory().on_host();
  if (comm.any(on_host) && comm.any(!on_host)) {
    throw Error(ExitCode::device, "device", "GPUs for all processes or for none",
                on_host ? "no GPU for this process" : "a GPU for this process, but not for others",
                "start at most as many processes on a node as it has GPUs, or set device to "
                "\"cpu\"");
  }
  if (last) run.last_result = last->output;
  require_agreement(comm, machinery_facts(machinery.libraries, machinery.isa));
  run.refused_keys = [&run](const nlohmann::json& before) {
    return keys_refused_on_resume(before, run.resolved, run.config.checkpoint.allow_change);
  };
  const std::string taken = version_taken(run.config, arguments.config);
  if (arguments.dry_run) {
    run_on_rank_zero(comm, [&] {
      if (!taken.empty()) fmt::print("{}\n", printable(taken));
      if (!left_out.empty()) fmt::print("warning: {}\n", printable(left_out));
      dry_run(run, *backend, comm.size());
      if (of_data) std::rethrow_exception(of_data);
    });
    return 0;
  }
  comm.barrier();  // once this line of output appears, every process handles signals
  if (first) {
    const std::string waiting = wait_policy_setting();
    const bool alone = comm.size() == 1;
    print_status(fmt::format("{}: {} process{}, {} thread{}{}{}, {}, output in {}\n{}\n",
                             run_label(run.config, run.config.out_dir), comm.size(),
                             alone ? "" : "es", max_threads(), max_threads() == 1 ? "" : "s",
                             alone ? "" : " each", waiting.empty() ? "" : " (" + waiting + ")",
                             backend->name(), run.config.out_dir, parameters));
    if (!taken.empty()) print_status(taken + "\n");
    if (!left_out.empty()) print_status("warning: " + left_out + "\n");
  }
  std::optional<LiveReport> report;
  if (first) report.emplace(run.config);
  run.validated = [&report](const Warn& warn) { report->draw(warn); };
  // The result holds the folder's lock until everything is written there.
  const TrainResult result = train(run, comm, *backend);
  if (result.interrupted) {
    return end_together(comm, ExitCode::interrupted, [&] {
      print_status(fmt::format(
          "interrupted; checkpoint saved at step {}. Run the same command to resume{}.\n",
          result.step, run.config.checkpoint.resume == "never" ? ", without --resume never" : ""));
    });
  }
  const RunConfig& c = run.config;
  const bool measures = !c.eval.tasks.empty() || comm.any(last.has_value());
  end_at_stop_signals();
  if (first) {
    print_status(fmt::format("checkpoint {}\n", result.checkpoint));
    if (!result.best.empty()) {
      print_status(fmt::format("checkpoint {}: best {}\n", result.best, c.checkpoint.best_metric));
    }
  }
  if (measures && comm.any(stop_signalled())) {  // too late for the step loop
    if (first) std::fputs(std::string(kStoppedLate).c_str(), stderr);
    return end_together(comm, ExitCode::interrupted, [] {});
  }
  const std::string& measured = result.best.empty() ? result.checkpoint : result.best;
  std::optional<Results> results;
  run_on_rank_zero(comm, [&] {
    results.emplace(c.out_dir + "/" + kResultsFile);
    results->set_run(c.name, run.resolved);
    results->arrange(results_of(c));  // drops results that the configuration no longer asks for
  });
  if (!c.eval.tasks.empty()) {
    tasks->measure_at_end(*backend, comm, measured, first ? &*results : nullptr, print_status);
  }
  if (!first) return 0;
  if (last) {
    EvalArguments eval = *last;
    eval.checkpoint = measured;
    run_eval(eval);
    add_perplexity(eval.output, &*results);
  }
  const std::string missing = missing_results(c, result, &*results);
  if (missing.empty()) {
    results->set_complete();
  } else {
    print_status(fmt::format(
        "warning: {} lacks {}, which only training measures; train again in another out_dir\n",
        results->path(), missing));
  }
  results->write();
  bool drawn = true;
  report->draw([&drawn](const std::string& text) {
    print_status(fmt::format("warning: {}\n", text));
    drawn = false;
  });
  if (drawn) print_status(fmt::format("report {}\n", report->path()));
  return 0;
}

}  // namespace bamtrain
