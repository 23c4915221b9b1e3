#include "commands/eval.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/backend.h"
#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "core/faults.h"
#include "core/join.h"
#include "core/option_value.h"
#include "core/print_message.h"
#include "eval/paper_protocols.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostTargets = int64_t{1} << 40;  // as for eval.tokens

/// The lengths at which the run measures the task, or perplexity for "".
std::vector<int64_t> lengths_of_run(const std::string& task, const RunConfig& c) {
  if (task.empty()) return c.eval.lengths;
  std::vector<int64_t> out;
  for (const TaskEvaluation& evaluation : c.eval.tasks) {
    const auto* const request = std::get_if<TaskRequest>(&evaluation.request);
    if (request == nullptr || request->task.info->name != task) continue;
    out.insert(out.end(), request->lengths.begin(), request->lengths.end());
  }
  return ascending(out);
}

constexpr const char* kTaskGroup = "Tasks";
constexpr const char* kPerplexityGroup = "Perplexity (not with --task)";

/// Adds the options that only apply to perplexity.
void add_perplexity_options(CLI::App& options, EvalArguments& eval, CLI::Option& task,
                            CLI::Option& output) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return options.add_option(name, value, text)->excludes(&task)->group(kPerplexityGroup);
  };
  add("--data", eval.data,
      "folder or glob of shards (default: data.val); for several data sets, each as NAME=PATH")
      ->type_name("PATH")
      ->allow_extra_args(false);
  take_names(add("--text", eval.text,
                 "documents: documents longer than the longest length, the same targets at every "
                 "length (default); beginnings: their beginnings; packed: the whole token stream; "
                 "short: whole documents up to the longest length"),
             kPerplexityTexts);
  take_words(
      add("--protocols", eval.protocols, "comma-separated: windows, last, bins (default: all)"),
      {"windows", "last", "bins"})
      ->delimiter(',')
      ->allow_extra_args(false);
  take_words(
      add("--protocol", eval.protocol, "the settings of a paper; other options override them"),
      kPaperProtocols);
  options
      .add_flag("--require-all-lengths", eval.require_all_lengths,
                "fail if no document has one of the lengths (default: leave it out with a warning)")
      ->excludes(&task)
      ->group(kPerplexityGroup);
  take_integers(add("--last-tokens", eval.last_tokens,
                    "K of protocol last (default: 256, or the shortest length if that is less; for "
                    "beginnings and packed text, each length)"),
                1, PerplexityRequest::kMostLength);
  take_integers(add("--bin", eval.bin, "positions per bin of protocol bins (default: 1024)"), 1,
                PerplexityRequest::kMostLength);
  take_integers(add("--positions", eval.positions,
                    "write the mean loss at each of the first N positions of the longest length "
                    "(needs --output)"),
                1, PerplexityRequest::kMostLength)
      ->needs(&output);
  take_integers(add("--count", eval.counts,
                    "the first N documents, or windows of packed text; for these, one number or "
                    "one per length (default: all)"),
                1, kMostTargets)
      ->delimiter(',')
      ->allow_extra_args(false);
  take_integers(
      add("--max-tokens", eval.max_tokens, "targets per length and protocol (default: all)"), 1,
      kMostTargets);
  take_names(add("--document-marks", eval.document_marks,
                 "keep or drop BOS and EOS in packed text (default: keep)"),
             kDocumentMarks);
  take_integers(add("--document-start", eval.document_start,
                    "BOS id that begins a document (default: data.document_start, or the shards' "
                    "manifest)"),
                0, INT32_MAX)
      ->type_name("ID");
  take_integers(add("--document-end", eval.document_end,
                    "EOS id that ends a document, to drop it (default: the manifest's)"),
                0, INT32_MAX)
      ->type_name("ID");
}

}  // namespace

std::unique_ptr<Backend> eval_backend(const EvalArguments& arguments, const RunConfig& c) {
  // The model itself refuses bf16; it cannot see TF32.
  if (c.model.kind == ModelKind::max_retrieval && arguments.precision == Precision::tf32) {
    throw Error(ExitCode::usage, "--precision",
                "fp32 with model.kind max_retrieval, whose priorities have 24 bits",
                "tf32, which keeps 11 bits", "choose fp32");
  }
  try {
    return make_backend(arguments.device.value_or(c.device),
                        arguments.precision.value_or(c.train.precision), 0);
  } catch (const Error& e) {
    if (!arguments.precision || e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::usage, "--precision", "choose one of them, or use a GPU");
  }
}

std::vector<int64_t> ascending(std::vector<int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

void check_lengths(const EvalArguments& arguments) {
  const auto& lengths = arguments.lengths;
  if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) {
    throw Error(ExitCode::usage, "--lengths",
                fmt::format("an integer from 1 to {}", PerplexityRequest::kMostLength), "0", "");
  }
}

EvalArguments with_lengths(const EvalArguments& arguments, const RunConfig& c) {
  EvalArguments out = arguments;
  if (!out.lengths.empty() || !out.protocol.empty()) return out;
  out.lengths = lengths_of_run(out.task, c);
  const std::string key = out.task.empty() ? "eval.lengths" : "eval.tasks";
  if (out.lengths.empty()) {
    throw missing(
        ExitCode::usage, "--lengths",
        "the run has none for " + (out.task.empty() ? "perplexity" : out.task) + " in " + key,
        "give them: --lengths 512,1024,2048");
  }
  std::vector<std::string> lengths;
  for (const int64_t length : out.lengths) lengths.push_back(std::to_string(length));
  print_message(stderr, "--lengths " + join(lengths, ",") + ", as in " + key);
  return out;
}

int run_eval(const EvalArguments& arguments) {
  const auto is_one_of = [&](const std::vector<std::string>& tasks) {
    return std::find(tasks.begin(), tasks.end(), arguments.task) != tasks.end();
  };
  if (!arguments.prompts.empty() && !is_one_of(kRetrievalTasks)) {
    throw Error(ExitCode::usage, "--write-prompts",
                "a task that generates prompts: " + join(kRetrievalTasks, " or "), arguments.task,
                "bamdata synth prints the sequences of other tasks");
  }
  if (is_one_of(kPromptTasks)) return run_eval_prompts(arguments);
  if (is_one_of(kRetrievalTasks)) return run_eval_retrieval(arguments);
  if (!arguments.task.empty()) return run_eval_task(arguments);
  return run_eval_perplexity(arguments);
}

Command eval_command(CLI::App& app) {
  const auto eval = std::make_shared<EvalArguments>();
  CLI::App* options = app.add_subcommand(
      "eval", "measure perplexity, or the accuracy on a task, against sequence length");
  constexpr const char* kGroup = "Evaluation";
  add_checkpoint(*options, eval->checkpoint)->group(kGroup);
  take_integers(
      options->add_option("--lengths", eval->lengths,
                          "comma-separated sequence lengths, such as 512,1024,2048; for a "
                          "task, source lengths (default: eval.lengths, or those in eval.tasks)"),
      0, PerplexityRequest::kMostLength)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...")
      ->group(kGroup);
  options->add_option("--output", eval->output, "write the result as JSON to this file")
      ->type_name("FILE")
      ->group(kGroup);
  add_overrides(*options, eval->overrides)->group(kGroup);
  take_names(options->add_option("--precision", eval->precision,
                                 "precision of the model (default: as in training)"),
             kPrecisionNames)
      ->group(kGroup);
  take_names(options->add_option("--device", eval->device,
                                 "device of the model (default: as in training)"),
             kDeviceNames)
      ->group(kGroup);
  CLI::Option* output = options->get_option("--output");

  CLI::Option* task =
      options
          ->add_option("--task", eval->task,
                       "a task of bamdata synth; choice, cloze or requests on the examples of a "
                       "file (bamtrain help downstream); passkey or niah, retrieval from long "
                       "prompts (bamtrain help retrieval)")
          ->type_name("NAME")
          ->group(kTaskGroup);
  options
      ->add_option("--task-set", eval->task_settings,
                   "an option of the task, repeatable (default: as in training; see bamtrain help "
                   "NAME)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(task)
      ->group(kTaskGroup);
  take_integers(
      options->add_option("--samples", eval->samples,
                          "sequences per length (default: 1000); prompts per length and depth for "
                          "passkey and niah; the first N examples of a file (default: all)"),
      1, kMostTargets)
      ->needs(task)
      ->group(kTaskGroup);
  take_integers(options->add_option("--seed", eval->seed, "seed of the sequences (default: 0)"), 0,
                INT64_MAX)
      ->needs(task)
      ->group(kTaskGroup);
  options
      ->add_option("--write-prompts", eval->prompts,
                   "write the prompts of passkey or niah, with their answers, to this file as JSON "
                   "lines instead of evaluating the model")
      ->type_name("FILE")
      ->needs(task)
      ->excludes(output)
      ->group(kTaskGroup);
  add_perplexity_options(*options, *eval, *task, *output);
  return {options, [eval] { return run_eval(*eval); }};
}

}  // namespace bamtrain
