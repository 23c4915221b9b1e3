#include "commands/train.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/backend.h"
#include "commands/eval.h"
#include "commands/failure.h"
#include "commands/report.h"
#include "commands/samples.h"
#include "config/changes.h"
#include "config/schema.h"
#include "core/parallel.h"
#include "core/standard_output.h"
#include "core/utf8.h"
#include "core/waiting.h"
#include "dist/together.h"
#include "record/progress.h"
#include "run/signals.h"
#include "run/train.h"

namespace bamtrain {

int run_train(const TrainArguments& arguments, Communicator& comm) {
  const bool first = comm.rank() == 0;
  TrainRun run;
  std::unique_ptr<Backend> backend;
  std::optional<EvalArguments> last;
  std::optional<Samples> samples;
  together(comm, [&] {
    run.config = read_run_config(arguments.config, arguments.overrides);
    run.resolved = resolved_json(run.config);
    backend = make_backend(run.config.device, run.config.train.precision, comm.local_rank());
    if (first) run.report_bytes = LiveReport::bytes(run.config);
    last = final_evaluation(run.config);
    if (last && first) {
      // Rank 0 alone evaluates at the end; what it would refuse then shows now, hours earlier.
      const ShardSet shards = ShardSet::open(run.config.data.val, run.config.model.vocab);
      check_perplexity_request(shards, request_of(*last, run.config, shards));
    }
    if (first && !run.config.sample.prompts.empty()) {
      samples.emplace(run.config);
      run.sample_bytes = samples->bytes();
      run.samples = [&samples](int64_t step, const Tensor& masters) {
        return samples->lines(step, masters);
      };
    }
  });
  const bool on_host = backend->memory().on_host();
  if (comm.any(on_host) && comm.any(!on_host)) {
    throw Error(ExitCode::device, "device", "GPUs for all processes or for none",
                on_host ? "no GPU for this one" : "a GPU for this one, none for others",
                "start no more processes on a node than it has GPUs, or set device to \"cpu\"");
  }
  run.refused_keys = [&run](const nlohmann::json& before) {
    return keys_refused_on_resume(before, run.resolved, run.config.checkpoint.allow_change);
  };
  if (arguments.dry_run) {
    on_first_rank(comm, [&] { dry_run(run, *backend, comm.size()); });
    return 0;
  }
  comm.barrier();  // from this line of output on, every process obeys signals
  if (first) {
    const std::string waiting = waiting_setting();
    fmt::print("{}: {} process(es) of {} thread(s){}, {}, {}\n",
               replace_controls(run_label(run.config, run.config.out_dir)), comm.size(),
               max_threads(), waiting.empty() ? "" : " (" + waiting + ")", backend->name(),
               replace_controls(run.config.out_dir));
    std::fflush(stdout);
  }
  std::optional<LiveReport> report;
  if (first) report.emplace(run.config);
  run.validated = [&report](const Warn& warn) { report->draw(warn); };
  const TrainResult result = train(run, comm, *backend);
  if (result.interrupted) {
    return end_together(comm, ExitCode::interrupted, [&] {
      fmt::print("stopped at step {} as asked; run the same command to resume{}\n", result.step,
                 run.config.checkpoint.resume == "never" ? " (without resume never)" : "");
      flush_standard_output();
    });
  }
  if (!first) return 0;
  fmt::print("checkpoint {}\n", result.checkpoint);
  restore_stop_signals();
  if (last) {
    // Too late for the step loop: the same command goes straight to this evaluation.
    if (stop_signalled()) return static_cast<int>(ExitCode::interrupted);
    EvalArguments eval = *last;
    eval.checkpoint = result.checkpoint;
    run_eval(eval);
  }
  bool drawn = true;
  report->draw([&drawn](const std::string& text) {
    fmt::print("warning: {}\n", text);
    drawn = false;
  });
  if (drawn) fmt::print("report {}\n", report->path());
  return 0;
}

}  // namespace bamtrain
