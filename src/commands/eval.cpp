#include "commands/eval.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/backend.h"
#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "core/join.h"
#include "core/option_value.h"
#include "eval/paper_protocols.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostTargets = int64_t{1} << 40;  // as for eval.tokens

void require_some(const std::vector<int64_t>& lengths) {
  if (!lengths.empty()) return;
  throw Error(ExitCode::usage, "eval", "--lengths", "none",
              "bamtrain eval --help lists what it takes");
}

/// Adds the options that only apply to perplexity.
void add_perplexity_options(CLI::App& options, EvalArguments& eval, CLI::Option& task,
                            CLI::Option& output) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return options.add_option(name, value, text)->excludes(&task);
  };
  add("--data", eval.data,
      "folder or glob of shards (default: data.val); several, each as NAME=PATH")
      ->allow_extra_args(false);
  options
      .add_flag("--require-all-lengths", eval.require_all_lengths,
                "refuse lengths that no document has, which are left out with a warning otherwise")
      ->excludes(&task);
  take_words(add("--protocol", eval.protocol,
                 "what a paper evaluates by, of bam, cable, dape, asentmax; other options replace "
                 "what it sets"),
             kPaperProtocols);
  take_names(add("--text", eval.text,
                 "documents: long ones, the same targets at every length (default); beginnings of "
                 "them; packed: all tokens in a row; short: whole documents up to the longest "
                 "length"),
             kPerplexityTexts);
  take_words(add("--protocols", eval.protocols, "of windows, last, bins (default: all)"),
             {"windows", "last", "bins"})
      ->delimiter(',');
  take_integers(add("--last-tokens", eval.last_tokens,
                    "K of protocol last (default: 256, or the shortest length where that is "
                    "less; of beginnings and packed text each length by itself)"),
                1, PerplexityRequest::kMostLength);
  take_integers(add("--bin", eval.bin, "positions per bin of protocol bins (default: 1024)"), 1,
                PerplexityRequest::kMostLength);
  take_integers(add("--positions", eval.positions,
                    "write the mean loss at each of the first so many positions of the longest "
                    "length"),
                1, PerplexityRequest::kMostLength)
      ->needs(&output);
  take_integers(add("--count", eval.counts,
                    "the first so many documents, or windows of packed text, of these one number "
                    "or one for each length (default: all)"),
                1, kMostTargets)
      ->delimiter(',');
  take_integers(
      add("--max-tokens", eval.max_tokens, "targets per length and protocol (default: all)"), 1,
      kMostTargets);
  take_names(add("--document-marks", eval.document_marks,
                 "keep or drop the ids that begin and end documents, of packed text (default: "
                 "keep)"),
             kDocumentMarks);
  take_integers(add("--document-start", eval.document_start,
                    "the id that begins a document (default: data.document_start, or the "
                    "manifest beside the shards)"),
                0, INT32_MAX);
  take_integers(add("--document-end", eval.document_end,
                    "the id that ends one, to be dropped (default: the manifest's)"),
                0, INT32_MAX);
}

}  // namespace

std::unique_ptr<Backend> eval_backend(const EvalArguments& arguments, const RunConfig& c) {
  // The model itself refuses bf16; it cannot see TF32.
  if (c.model.kind == ModelKind::max_retrieval && arguments.precision == Precision::tf32) {
    throw Error(ExitCode::usage, "--precision",
                "fp32 with model.kind max_retrieval, whose priorities have 24 bits",
                "tf32, which keeps 11 of them", "choose fp32");
  }
  try {
    return make_backend(arguments.device.value_or(c.device),
                        arguments.precision.value_or(c.train.precision), 0);
  } catch (const Error& e) {
    if (!arguments.precision || e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::usage, "--precision", "choose one of these, or a GPU");
  }
}

std::vector<int64_t> ascending(std::vector<int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

void require_lengths(const EvalArguments& arguments) {
  const auto& lengths = arguments.lengths;
  if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) {
    throw Error(ExitCode::usage, "--lengths",
                fmt::format("an integer from 1 to {}", PerplexityRequest::kMostLength), "0",
                "choose one within these limits");
  }
  require_some(lengths);
}

std::vector<int64_t> sorted_lengths(const std::vector<int64_t>& lengths) {
  require_some(lengths);
  return ascending(lengths);
}

int run_eval(const EvalArguments& arguments) {
  const auto is_one_of = [&](const std::vector<std::string>& tasks) {
    return std::find(tasks.begin(), tasks.end(), arguments.task) != tasks.end();
  };
  if (!arguments.prompts.empty() && !is_one_of(kRetrievalTasks)) {
    throw Error(ExitCode::usage, "--write-prompts",
                "a task that draws texts: " + join(kRetrievalTasks), arguments.task,
                "bamdata synth prints the sequences of other tasks");
  }
  if (is_one_of(kPromptTasks)) return run_eval_prompts(arguments);
  if (is_one_of(kRetrievalTasks)) return run_eval_retrieval(arguments);
  if (!arguments.task.empty()) return run_eval_task(arguments);
  return run_eval_perplexity(arguments);
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
  take_names(options->add_option("--precision", eval->precision,
                                 "fp32, tf32 or bf16 (default: as trained)"),
             kPrecisionNames);
  take_names(options->add_option("--device", eval->device,
                                 "auto, cpu, cuda or check (default: as trained)"),
             kDeviceNames);
  CLI::Option* output =
      options->add_option("--output", eval->output, "write the result as JSON to this file");
  options
      ->add_option("--write-prompts", eval->prompts,
                   "write the texts of passkey and niah with their answers to this file, a JSON "
                   "object a line, and ask the model nothing")
      ->needs(task)
      ->excludes(output);
  add_perplexity_options(*options, *eval, *task, *output);
  return {options, [eval] { return run_eval(*eval); }};
}

}  // namespace bamtrain
