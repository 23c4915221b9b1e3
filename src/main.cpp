// The command line of bamtrain. Everything else is a config key; `--resume` is the only alias.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "config/changes.h"
#include "config/origin.h"
#include "config/reader.h"
#include "config/schema.h"
#include "core/durable_file.h"
#include "core/parallel.h"
#include "core/standard_output.h"
#include "dist/communicator.h"
#include "dist/together.h"
#include "eval/perplexity.h"
#include "ops/check/check.h"
#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "ops/host_copy.h"
#include "ops/reference/reference.h"
#include "train/progress.h"
#include "train/run_files.h"
#include "train/signals.h"
#include "train/train.h"

namespace bamtrain {

namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool dry_run = false, print_schema = false;
};

struct EvalArguments {
  std::string checkpoint, data, output;
  std::vector<std::string> overrides;  // of the prior and the scale
  std::optional<DeviceKind> device;    // none, here and below: as the checkpoint's run
  std::optional<Precision> precision;
  std::vector<int64_t> lengths;
  std::vector<std::string> protocols = {"windows", "last", "bins"};
  int64_t last_tokens = 0, max_tokens = 0;
};

/// `local_rank`: this process among those of its node, each of which takes a GPU of its own.
std::unique_ptr<Backend> make_backend(DeviceKind device, Precision precision, int local_rank) {
  const bool tf32 = precision == Precision::tf32;
#ifdef BAMTRAIN_CUDA
  const bool found = device != DeviceKind::cpu && cuda_devices() > 0;
  if (device == DeviceKind::cuda || (device == DeviceKind::automatic && found)) {
    return make_cuda_backend(local_rank, tf32);
  }
  if (device == DeviceKind::check && found) {
    CheckLimits limits;
    if (tf32) limits.f32 = 0x1p-8;  // operands are rounded by 2^-11 at most, one or two a term
    return make_check_backend(make_cuda_backend(local_rank, tf32), make_cpu_backend(), limits);
  }
#else
  static_cast<void>(local_rank);
  if (device == DeviceKind::cuda) {
    throw Error(ExitCode::device, "device", "auto, cpu or check in this build", "cuda",
                "build bamtrain with CUDA, or set device to auto");
  }
#endif
  if (tf32) {
    throw Error(ExitCode::config, "train.precision", "fp32 or bf16 on a CPU", "tf32",
                "choose one of these, or a GPU");
  }
  if (device == DeviceKind::check) {
    return make_check_backend(make_cpu_backend(), make_reference_backend());
  }
  return make_cpu_backend();
}

// --- evaluation

void print_perplexities(const nlohmann::ordered_json& result) {
  for (const char* protocol : {"windows", "last"}) {
    if (!result.contains(protocol)) continue;
    fmt::print("{}\n", std::string(protocol) == "windows"
                           ? "perplexity, windows of each length, all positions"
                           : fmt::format("perplexity of the last {} tokens of each window",
                                         result["last_tokens"].get<int64_t>()));
    for (const auto& row : result[protocol]) {
      fmt::print("  length {:>7}  perplexity {:>9.3f}  loss {:.4f}  ({} tokens)\n",
                 row["length"].get<int64_t>(), row["perplexity"].get<double>(),
                 row["loss"].get<double>(), row["tokens"].get<int64_t>());
    }
  }
  if (!result.contains("bins")) return;
  fmt::print("perplexity by position in one long pass\n");
  for (const auto& row : result["bins"]) {
    fmt::print("  {:>7} to {:>7}  perplexity {:>9.3f}\n", row["from"].get<int64_t>(),
               row["to"].get<int64_t>(), row["perplexity"].get<double>());
  }
}

PerplexityRequest request_of(const EvalArguments& arguments, const RunConfig& c,
                             const ShardSet& shards) {
  const std::optional<int64_t> start =
      c.data.document_start ? c.data.document_start : shards.document_start();
  if (!start) {
    throw Error(ExitCode::config, "data.document_start",
                "the id that begins a document, which evaluation at lengths needs",
                "neither the key nor a manifest beside " + shards.source(),
                "set data.document_start, or evaluate shards with a manifest");
  }
  PerplexityRequest request;
  request.lengths = arguments.lengths;
  std::sort(request.lengths.begin(), request.lengths.end());
  request.lengths.erase(std::unique(request.lengths.begin(), request.lengths.end()),
                        request.lengths.end());
  request.protocols = arguments.protocols;
  request.last_tokens = arguments.last_tokens;
  request.max_tokens = arguments.max_tokens;
  request.training_length = c.data.sequence_length;
  request.document_start = *start;
  return request;
}

/// The evaluation that ends a training run; none where the config asks for none.
std::optional<EvalArguments> final_evaluation(const RunConfig& c) {
  if (c.eval.lengths.empty() || c.data.val.empty()) return std::nullopt;
  EvalArguments eval;
  eval.lengths = c.eval.lengths;
  eval.protocols = {"windows", "last"};
  eval.max_tokens = c.eval.tokens;
  eval.output = c.out_dir + "/perplexity.json";
  eval.device = c.device;
  return eval;
}

/// The checkpoint's config with what `overrides` replace: a prior by one that has its parameters, a
/// scale by another where neither has any. So what was trained stays in use, and what is in use was
/// trained.
RunConfig evaluated_config(const std::string& text, const std::string& where,
                           const std::vector<std::string>& overrides) {
  const RunConfig trained = read_run_config_text(text, where, {});
  RunConfig c = read_run_config_text(text, where, overrides, ConfigUse::evaluation);
  bool other_scale = false;
  for (const std::string& key : changed_keys(resolved_json(trained), resolved_json(c))) {
    if (lies_in(key, "model.attention.prior")) continue;
    if (lies_in(key, "model.attention.scale")) {
      other_scale = true;
      continue;
    }
    throw Error(ExitCode::usage, "--set",
                "keys of model.attention.prior and model.attention.scale, which evaluation may "
                "replace",
                key, "remove it");
  }
  const ParameterLayout before(trained.model, trained.data.sequence_length);
  const ParameterLayout now(c.model, c.data.sequence_length);
  constexpr ParameterGroup kScale = ParameterGroup::scale;
  if (other_scale && before.count({kScale}) + now.count({kScale}) > 0) {
    throw Error(ExitCode::config, "model.attention.scale",
                "scales without parameters where evaluation replaces one by another",
                trained.model.attention.scale.name + " in training, " +
                    c.model.attention.scale.name + " now",
                "remove --set model.attention.scale");
  }
  const bool same = std::equal(before.all().begin(), before.all().end(), now.all().begin(),
                               now.all().end(), [](const Parameter& a, const Parameter& b) {
                                 return a.name == b.name && a.shape == b.shape;
                               });
  if (!same) {
    throw Error(ExitCode::config, "model.attention.prior",
                "a prior with the parameters of " + trained.model.attention.prior.names() +
                    ", which the checkpoint was trained with",
                c.model.attention.prior.names(), "choose another, or remove --set");
  }
  return c;
}

nlohmann::ordered_json evaluate(const EvalArguments& arguments) {
  const Checkpoint checkpoint = open_checkpoint(arguments.checkpoint);
  const std::string state = checkpoint.folder + "/state.json";
  if (!checkpoint.state.contains("config")) {
    throw Error(ExitCode::checkpoint, state + ": config", "the run's config", "none",
                "use another checkpoint");
  }
  const RunConfig c =
      evaluated_config(checkpoint.state["config"].dump(), state + ": config", arguments.overrides);
  const Precision precision = arguments.precision.value_or(c.train.precision);
  const std::unique_ptr<Backend> backend =
      make_backend(arguments.device.value_or(c.device), precision, 0);
  const std::string source = arguments.data.empty() ? c.data.val : arguments.data;
  if (source.empty()) {
    throw Error(ExitCode::usage, "--data", "a folder or glob of shards",
                "neither this option nor data.val in the checkpoint's config", "give --data");
  }
  const ShardSet shards = ShardSet::open(source, c.model.vocab);
  require_same_data(checkpoint.state.value("data", nlohmann::json()), shards, true,
                    checkpoint.folder);
  const PerplexityRequest request = request_of(arguments, c, shards);
  check_perplexity_request(shards, request);

  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  Tensor masters;
  arena.add("weights.masters", &masters, Dtype::f32, {layout.elements()});
  arena.commit(backend->memory());
  HostCopy host(*backend, masters, HostCopy::Contents::undefined);
  read_tensors(SafetensorsFile::open(checkpoint.model_file()),
               model_tensors(layout, host.tensor()));
  host.upload();

  const Dtype activations = activation_dtype(precision);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  nlohmann::ordered_json result = {{"checkpoint", checkpoint.folder},
                                   {"name", c.name},
                                   {"step", checkpoint.step},
                                   {"data", source},
                                   {"data_fingerprint", shards.fingerprint()},
                                   {"prior", resolved_json(c)["model"]["attention"]["prior"]},
                                   {"scale", resolved_json(c)["model"]["attention"]["scale"]},
                                   {"precision", name_of(activations)},
                                   {"training_length", c.data.sequence_length}};
  result.update(perplexity_against_length(
      c.model, c.data.sequence_length, *backend, activations, masters, shards, request,
      [&](const std::string& protocol, int64_t length, double share) {
        if (terminal) {
          fmt::print(stderr, "\r\033[K{} at {}: {:.0f}%", protocol, length, 100 * share);
        }
      }));
  if (terminal) fmt::print(stderr, "\r\033[K");
  return result;
}

int run_eval(const EvalArguments& arguments) {
  // Opened first: a path that cannot be written is found before the work, not after it.
  std::optional<AtomicFile> output;
  if (!arguments.output.empty()) output.emplace(arguments.output);
  const nlohmann::ordered_json result = evaluate(arguments);
  if (output) {
    output->write(result.dump(2) + "\n");
    output->commit();
  }
  print_perplexities(result);
  return 0;
}

// --- training

/// Rank 0 says why the run ends, and all end with `code`. No rank ends earlier: a launcher that
/// sees the exit code of one kills the others.
int end_together(Communicator& comm, ExitCode code, const std::function<void()>& say) {
  if (comm.rank() == 0) say();
  comm.barrier();
  return static_cast<int>(code);
}

int run_train(const TrainArguments& arguments, Communicator& comm) {
  const bool first = comm.rank() == 0;
  TrainRun run;
  std::unique_ptr<Backend> backend;
  std::optional<EvalArguments> last;
  together(comm, [&] {
    run.config = read_run_config(arguments.config, arguments.overrides);
    run.resolved = resolved_json(run.config);
    backend = make_backend(run.config.device, run.config.train.precision, comm.local_rank());
    last = final_evaluation(run.config);
    if (last && first) {
      // Rank 0 alone evaluates at the end; what it would refuse then shows now, hours earlier.
      const ShardSet shards = ShardSet::open(run.config.data.val, run.config.model.vocab);
      check_perplexity_request(shards, request_of(*last, run.config, shards));
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
    fmt::print("{}: {} process(es) of {} thread(s), {}, {}\n", run.config.name, comm.size(),
               max_threads(), backend->name(), run.config.out_dir);
    std::fflush(stdout);
  }
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
  return 0;
}

/// Says what ended the program, below what was printed before, and returns the exit code.
int report(const std::exception& failure, const std::string& who) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  auto code = error ? error->code() : ExitCode::internal;
  std::string text = failure.what();
  if (!error && standard_output_failed()) {  // {fmt} throws an exception of its own then
    code = ExitCode::io;
    text = standard_output_error(0).what();
  }
  std::fflush(stdout);
  std::fputs(fmt::format("bamtrain: {}{}\n", who, text).c_str(), stderr);
  return static_cast<int>(code);
}

void require_readable_config(const TrainArguments& arguments) {
  if (arguments.config.empty()) {
    throw Error(ExitCode::usage, "--config", "a run configuration", "none",
                "bamtrain --config run.json; see bamtrain --help");
  }
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"bamtrain pretrains decoder-only language models and studies how they extrapolate"};
  app.set_version_flag("--version", BAMTRAIN_VERSION);
  TrainArguments arguments;
  std::string resume;
  app.add_option("--config", arguments.config, "run configuration (JSON)");
  app.add_option("--set", arguments.overrides,
                 "override a config key: a.b.c=value, JSON or a bare string (repeatable)")
      ->take_all();
  app.add_option("--resume", resume, "alias of checkpoint.resume: auto, never or a folder");
  app.add_flag("--dry-run", arguments.dry_run,
               "check config, data and memory, print what the run needs, train nothing");
  app.add_flag("--print-schema", arguments.print_schema, "print the config's JSON Schema");

  EvalArguments eval;
  CLI::App* eval_command = app.add_subcommand("eval", "perplexity against length");
  eval_command->add_option("--checkpoint", eval.checkpoint, "checkpoint folder")->required();
  eval_command->add_option("--lengths", eval.lengths, "sequence lengths, e.g. 512,1024,2048")
      ->required()
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  eval_command
      ->add_option("--set", eval.overrides,
                   "another prior with the same parameters, model.attention.prior...=value, or "
                   "another scale where neither has any, model.attention.scale...=value")
      ->take_all();
  eval_command->add_option("--data", eval.data, "folder or glob of shards (default: data.val)");
  eval_command->add_option("--protocols", eval.protocols, "of windows, last, bins (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"windows", "last", "bins"}));
  eval_command
      ->add_option("--last-tokens", eval.last_tokens,
                   "K of protocol last (default: 256, half the training length or the shortest "
                   "length)")
      ->check(CLI::PositiveNumber);
  eval_command
      ->add_option("--max-tokens", eval.max_tokens,
                   "targets per length and protocol (default: all)")
      ->check(CLI::PositiveNumber);
  eval_command
      ->add_option("--precision", eval.precision, "fp32, tf32 or bf16 (default: as trained)")
      ->transform(CLI::CheckedTransformer(kPrecisionNames));
  eval_command
      ->add_option("--device", eval.device, "auto, cpu, cuda or check (default: as trained)")
      ->transform(CLI::CheckedTransformer(kDeviceNames));
  eval_command->add_option("--output", eval.output, "write the result as JSON to this file");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (arguments.print_schema) {
    fmt::print("{}\n", schema_json().dump(2));
    return 0;
  }
  if (*eval_command) {
    if (!arguments.config.empty() || !arguments.overrides.empty() || !resume.empty() ||
        arguments.dry_run) {
      throw Error(ExitCode::usage, "eval", "options of eval alone: the checkpoint has its config",
                  "--config, --set, --resume or --dry-run before it", "remove them");
    }
    if (const auto comm = make_communicator(); comm->size() > 1) {
      return end_together(*comm, ExitCode::usage, [&] {
        report(Error(ExitCode::usage, "eval", "one process", std::to_string(comm->size()),
                     "run it without mpirun"),
               "");
      });
    }
    return run_eval(eval);
  }
  if (!resume.empty())
    arguments.overrides.push_back("checkpoint.resume=" + nlohmann::json(resume).dump());
  require_readable_config(arguments);

  take_stop_signals();
  // It outlives the handler: the other ranks wait until abort() releases them.
  const std::unique_ptr<Communicator> comm = make_communicator();
  try {
    return run_train(arguments, *comm);
  } catch (const std::exception& e) {
    const int code = report(e, comm->size() > 1 ? fmt::format("rank {}: ", comm->rank()) : "");
    comm->abort(code);
    return code;
  }
}

}  // namespace

}  // namespace bamtrain

int main(int argc, char** argv) {
  // A file past the process's size limit (ulimit -f) is then a failed write, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // A file opened in the place of a closed standard descriptor would receive what is printed there.
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDWR) != descriptor) return 1;
  }
  try {
    const int code = bamtrain::parse_and_run(argc, argv);
    if (code == 0) bamtrain::flush_standard_output();
    return code;
  } catch (const std::exception& e) {
    return bamtrain::report(e, "");
  }
}
