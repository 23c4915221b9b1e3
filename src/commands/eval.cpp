#include "commands/eval.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands/backend.h"
#include "commands/command.h"
#include "commands/trained.h"
#include "config/schema.h"
#include "core/clustered_mean.h"
#include "core/durable_file.h"
#include "core/option_value.h"
#include "core/terminal.h"
#include "model/text_model.h"
#include "record/event_file.h"
#include "record/run_files.h"
#include "record/run_text.h"
#include "report/report.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostTargets = int64_t{1} << 40;  // as eval.tokens

/// " +- 0.0123" of the error under `key`; "" where it is unknown.
std::string error_text(const nlohmann::ordered_json& row, const char* key, int decimals) {
  if (row[key].is_null()) return "";
  return plus_minus(row[key].get<double>(), decimals);
}

/// What the errors beside the figures are, and are not.
void explain_errors(bool known, bool unknown) {
  if (known) {
    fmt::print(
        "+-: the standard error of sampling the text, by document; models of other seeds differ "
        "besides\n");
  }
  if (unknown) fmt::print("without +-: one document, whose standard error is unknown\n");
}

void print_perplexities(const nlohmann::ordered_json& result) {
  bool known = false, unknown = false;
  const auto note = [&](const nlohmann::ordered_json& row) {
    (row["loss_error"].is_null() ? unknown : known) = true;
  };
  for (const char* protocol : {"windows", "last"}) {
    if (!result.contains(protocol)) continue;
    fmt::print("{}\n", std::string(protocol) == "windows"
                           ? "perplexity, windows of each length, all positions"
                           : fmt::format("perplexity of the last {} tokens of each window",
                                         result["last_tokens"].get<int64_t>()));
    for (const auto& row : result[protocol]) {
      const auto documents = row["documents"].get<int64_t>();
      const std::string bits =
          row.contains("bits_per_byte")
              ? fmt::format(", {:.4f} bits per byte", row["bits_per_byte"].get<double>())
              : "";
      fmt::print("  length {:>7}  perplexity {:>9.3f}{}  loss {:.4f}{}  ({} tokens, {} {}{})\n",
                 row["length"].get<int64_t>(), row["perplexity"].get<double>(),
                 error_text(row, "perplexity_error", 3), row["loss"].get<double>(),
                 error_text(row, "loss_error", 4), row["tokens"].get<int64_t>(), documents,
                 documents == 1 ? "document" : "documents", bits);
      note(row);
    }
  }
  if (result.contains("bins")) {
    fmt::print("perplexity by position in one long pass\n");
    for (const auto& row : result["bins"]) {
      fmt::print("  {:>7} to {:>7}  perplexity {:>9.3f}{}\n", row["from"].get<int64_t>(),
                 row["to"].get<int64_t>(), row["perplexity"].get<double>(),
                 error_text(row, "perplexity_error", 3));
      note(row);
    }
  }
  explain_errors(known, unknown);
}

/// Error (ExitCode::nonfinite) where a loss is no number, naming the first.
void require_finite(const nlohmann::ordered_json& result) {
  for (const char* protocol : {"windows", "last", "bins"}) {
    if (!result.contains(protocol)) continue;
    for (const auto& row : result[protocol]) {
      const auto loss = row["loss"].get<double>();
      if (std::isfinite(loss)) continue;
      const bool bin = !row.contains("length");
      throw Error(ExitCode::nonfinite, result["checkpoint"].get<std::string>(), "finite losses",
                  fmt::format("{} {} {} ({})", std::isnan(loss) ? "NaN" : "infinity",
                              bin ? "from position" : "at length",
                              row[bin ? "from" : "length"].get<int64_t>(), protocol),
                  "see whether --precision fp32 gives numbers; if not, an earlier checkpoint");
    }
  }
}

/// How many bytes of text each id is, by the tokenizer that made `shards`; empty where it is not
/// known or not found near them.
std::vector<int64_t> token_bytes(const ShardSet& shards, const RunConfig& config) {
  if (!shards.manifest()) return {};
  RunConfig near = config;
  near.data.val = shards.source();
  std::vector<int64_t> out;
  try {
    const Tokenizer tokenizer =
        open_tokenizer({"tokenizer", "", shards.manifest()->tokenizer_sha256}, near);
    for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
      out.push_back(static_cast<int64_t>(tokenizer.bytes(id, false).size()));
    }
  } catch (const Error& e) {
    if (e.code() != ExitCode::data) throw;
  }
  return out;
}

/// A run of TensorBoard whose steps are lengths, in the place of what the folder held.
void write_events(const std::string& folder, const nlohmann::ordered_json& result) {
  EventFile events(folder, 0);
  for (const char* protocol : {"windows", "last"}) {
    const std::string tag = std::string("perplexity/") + protocol;
    for (const auto& row : result[protocol]) {
      const Scalar scalar = {tag, row["perplexity"].get<float>()};
      events.write_scalars(row["length"].get<int64_t>(), {&scalar, 1});
    }
  }
  events.sync();
}

}  // namespace

PerplexityRequest request_of(const EvalArguments& arguments, const RunConfig& c,
                             const ShardSet& shards) {
  std::optional<int64_t> start = arguments.document_start;
  if (!start) start = shards.document_start(c.data.document_start);
  if (!start) {
    throw Error(ExitCode::config, "data.document_start",
                "the id that begins a document, which evaluation at lengths needs",
                "neither the key nor a manifest beside " + shards.source(),
                shards.document_start_remedy() +
                    "; eval takes --document-start too; or evaluate shards with a manifest");
  }
  PerplexityRequest request;
  request.lengths = arguments.lengths;
  std::sort(request.lengths.begin(), request.lengths.end());
  request.lengths.erase(std::unique(request.lengths.begin(), request.lengths.end()),
                        request.lengths.end());
  request.protocols = arguments.protocols;
  request.last_tokens = arguments.last_tokens;
  request.max_tokens = arguments.max_tokens;
  request.document_start = *start;
  return request;
}

std::optional<EvalArguments> final_evaluation(const RunConfig& c) {
  if (c.eval.lengths.empty() || c.data.val.empty()) return std::nullopt;
  EvalArguments eval;
  eval.lengths = c.eval.lengths;
  eval.protocols = {"windows", "last"};
  const int64_t longest = *std::max_element(eval.lengths.begin(), eval.lengths.end());
  if (longest > PerplexityRequest::kBin) eval.protocols.push_back("bins");
  eval.last_tokens = c.eval.last_tokens;
  eval.max_tokens = c.eval.length_tokens.value_or(c.eval.tokens);
  eval.output = c.out_dir + "/perplexity.json";
  if (c.log.tensorboard) eval.events = c.out_dir + "/tensorboard/perplexity";
  eval.device = c.device;
  return eval;
}

std::unique_ptr<Backend> eval_backend(const EvalArguments& arguments, const RunConfig& c) {
  try {
    return make_backend(arguments.device.value_or(c.device),
                        arguments.precision.value_or(c.train.precision), 0);
  } catch (const Error& e) {
    if (!arguments.precision || e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::usage, "--precision", "choose one of these, or a GPU");
  }
}

namespace {

nlohmann::ordered_json evaluate(const EvalArguments& arguments) {
  const Checkpoint checkpoint = open_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_text_model(c.model);
  const Precision precision = arguments.precision.value_or(c.train.precision);
  const std::unique_ptr<Backend> backend = eval_backend(arguments, c);
  const std::string source = arguments.data.empty() ? c.data.val : arguments.data;
  if (source.empty()) {
    throw Error(ExitCode::usage, "--data", "a folder or glob of shards",
                "neither this option nor data.val in the checkpoint's config",
                c.data.train.has_tasks() ? "give --data, or --task" : "give --data");
  }
  const ShardSet shards = ShardSet::open(source, c.model.vocab);
  require_same_data(checkpoint.state.value("data", nlohmann::json()), describe_data(shards),
                    shards.source(), true, checkpoint.folder);
  PerplexityRequest request = request_of(arguments, c, shards);
  check_perplexity_request(shards, request);
  request.token_bytes = token_bytes(shards, c);

  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  const Tensor masters = load_masters(checkpoint, layout, *backend, arena);

  const Dtype activations = activation_dtype(precision);
  const Terminal terminal(STDERR_FILENO);
  const nlohmann::ordered_json attention = resolved_json(c)["model"]["attention"];
  nlohmann::ordered_json result = {{"checkpoint", checkpoint.folder},
                                   {"name", c.name},
                                   {"step", checkpoint.step},
                                   {"data", source},
                                   {"data_fingerprint", shards.fingerprint()},
                                   {"prior", attention["prior"]},
                                   {"scale", attention["scale"]},
                                   {"normalizer", attention["normalizer"]},
                                   {"precision", name_of(activations)},
                                   {"training_length", c.data.sequence_length}};
  result.update(perplexity_against_length(
      c.model, c.data.sequence_length, *backend, activations, masters, shards, request,
      [&](const std::string& protocol, int64_t length, double share) {
        if (terminal.live()) {
          std::fputs(
              fmt::format("\r\033[K{} at {}: {:.0f}%", protocol, length, 100 * share).c_str(),
              stderr);
        }
      }));
  if (terminal.live()) std::fputs("\r\033[K", stderr);
  return result;
}

}  // namespace

void require_lengths(const EvalArguments& arguments) {
  const auto& lengths = arguments.lengths;
  if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) {
    throw Error(ExitCode::usage, "--lengths",
                fmt::format("an integer from 1 to {}", PerplexityRequest::kMostLength), "0",
                "choose one within these limits");
  }
  if (!lengths.empty()) return;
  throw Error(ExitCode::usage, "eval", "--lengths", "none",
              "bamtrain eval --help lists what it takes");
}

int run_eval(const EvalArguments& arguments) {
  const auto end = kPromptTasks.end();
  if (std::find(kPromptTasks.begin(), end, arguments.task) != end) {
    return run_eval_prompts(arguments);
  }
  if (arguments.task == "passkey") return run_eval_passkey(arguments);
  if (arguments.task == "niah") return run_eval_niah(arguments);
  if (!arguments.task.empty()) return run_eval_task(arguments);
  require_lengths(arguments);
  // Opened first: a path that cannot be written is found before the work, not after it.
  std::optional<AtomicFile> output;
  if (!arguments.output.empty()) output.emplace(arguments.output);
  const nlohmann::ordered_json result = evaluate(arguments);
  // Printed first: numbers that took hours are not lost where no file takes them.
  print_perplexities(result);
  const auto written = nlohmann::json::parse(result.dump());
  fmt::print("{}", perplexity_plot(read_perplexity(written, "the result")));
  if (output) {
    output->write(result.dump(2) + "\n");
    output->commit();
  }
  if (!arguments.events.empty()) write_events(arguments.events, result);
  require_finite(result);
  return 0;
}

Command eval_command(CLI::App& app) {
  const auto eval = std::make_shared<EvalArguments>();
  CLI::App* options =
      app.add_subcommand("eval",
                         "perplexity, or the scores of a task, against length; multiple choice, "
                         "cloze and requests of a file");
  options->add_option("--checkpoint", eval->checkpoint, "checkpoint folder")->required();
  take_integers(options->add_option("--lengths", eval->lengths,
                                    "sequence lengths, e.g. 512,1024,2048; of a task its sources'"),
                0, PerplexityRequest::kMostLength)
      ->delimiter(',');
  add_overrides(*options, eval->overrides);
  CLI::Option* task = options->add_option(
      "--task", eval->task,
      "in place of perplexity, accuracy and exact match of this task; or choice, cloze, requests: "
      "of the texts of a file (bamtrain help downstream); or passkey, niah: what the model finds "
      "in "
      "long texts (bamtrain help retrieval)");
  options
      ->add_option(
          "--task-set", eval->task_settings,
          "an option of the task, KEY=VALUE (default: as in training); of choice, cloze, requests, "
          "passkey and niah what their pages say")
      ->allow_extra_args(false)
      ->needs(task);
  take_integers(
      options->add_option("--samples", eval->samples,
                          "sequences at each length (1000), prompts of passkey and niah at "
                          "each length and depth; of a file the first so many examples "
                          "(all)"),
      1, kMostTargets)
      ->needs(task);
  take_integers(options->add_option("--seed", eval->seed, "of these sequences (0)"), 0, INT64_MAX)
      ->needs(task);
  options->add_option("--data", eval->data, "folder or glob of shards (default: data.val)")
      ->excludes(task);
  take_words(
      options->add_option("--protocols", eval->protocols, "of windows, last, bins (default: all)"),
      {"windows", "last", "bins"})
      ->delimiter(',')
      ->excludes(task);
  take_integers(
      options->add_option("--last-tokens", eval->last_tokens,
                          "K of protocol last (default: 256, or the shortest length where that is "
                          "less)"),
      1, PerplexityRequest::kMostLength)
      ->excludes(task);
  take_integers(options->add_option("--max-tokens", eval->max_tokens,
                                    "targets per length and protocol (default: all)"),
                1, kMostTargets)
      ->excludes(task);
  take_integers(
      options->add_option("--document-start", eval->document_start,
                          "the id that begins a document (default: data.document_start, or the "
                          "manifest beside the shards)"),
      0, INT32_MAX)
      ->excludes(task);
  take_names(options->add_option("--precision", eval->precision,
                                 "fp32, tf32 or bf16 (default: as trained)"),
             kPrecisionNames);
  take_names(options->add_option("--device", eval->device,
                                 "auto, cpu, cuda or check (default: as trained)"),
             kDeviceNames);
  options->add_option("--output", eval->output, "write the result as JSON to this file");
  return {options, [eval] { return run_eval(*eval); }};
}

}  // namespace bamtrain
