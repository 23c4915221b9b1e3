// bamtrain eval --task choice, cloze or requests: the likelihoods that a model gives to
// continuations of contexts.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands/eval.h"
#include "commands/eval_result.h"
#include "commands/load_checkpoint.h"
#include "commands/text_request.h"
#include "core/clustered_mean.h"
#include "core/standard_output.h"
#include "core/utf8.h"
#include "eval/text_evaluation.h"
#include "model/causal_lm.h"
#include "prompts/choice_format.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

/// "  acc 0.2500 ± 0.0125  acc_norm 0.3000 ± 0.0132".
std::string scores_text(const ordered_json& row) {
  std::string text;
  for (const char* name : {"acc", "acc_norm", "acc_token", "perplexity"}) {
    if (!row.contains(name)) continue;
    const ordered_json& error = row[std::string(name) + "_error"];
    const int decimals = std::string_view(name) == "perplexity" ? 3 : 4;
    text += fmt::format("  {} {:.{}f}{}", name, row[name].get<double>(), decimals,
                        error.is_null() ? "" : plus_minus(error.get<double>(), decimals));
  }
  return text;
}

/// The benchmark of a file's examples: "PIQA", or the last words of passages.
std::string benchmark_of(const ordered_json& task) {
  if (!task.contains("format")) return "last words";
  return choice_format(task["format"].get<std::string>(), "format").benchmark;
}

void print_prompt_scores(const ordered_json& result) {
  const ordered_json& scores = result["scores"];
  const ordered_json& task = result["task"];
  const auto examples = scores["examples"].get<int64_t>();
  fmt::print("{}: {}, {} {}\n{}\n", printable(task["file"].get<std::string>()), benchmark_of(task),
             examples, examples == 1 ? "example" : "examples", scores_text(scores));
  if (result.contains("groups")) {
    for (const ordered_json& row : result["groups"]) {
      fmt::print("  {} ({}){}\n", printable(row["group"].get<std::string>()),
                 row["examples"].get<int64_t>(), scores_text(row));
    }
  }
  fmt::print("±: standard error over examples; seed variance not included\n");
}

/// {"logprob", "is_greedy", "tokens"} for each request, one line each.
std::string lines_of(const ordered_json& answers) {
  std::string lines;
  for (const ordered_json& answer : answers) lines += answer.dump() + "\n";
  return lines;
}

}  // namespace

int run_eval_prompts(const EvalArguments& arguments) {
  const TextTaskInfo& info = *find_text_task(arguments.task);
  const TextTaskRequest request =
      text_request(arguments, text_settings(arguments), default_options(info.options));
  check_output(arguments.output);
  const Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_causal_lm(c.model);
  const Tokenizer tokenizer =
      open_tokenizer({"--task-set tokenizer", request.options.text("tokenizer"),
                      tokenizer_sha256(checkpoint), run_folder(checkpoint)},
                     c);
  std::unique_ptr<TextEvaluation> texts;
  try {
    texts = open_text_evaluation(request, {tokenizer, document_start(c, tokenizer)});
  } catch (const Error& e) {
    throw at_option(e);
  }

  const std::unique_ptr<Backend> backend = eval_backend(arguments, c);
  const Precision precision = arguments.precision.value_or(c.train.precision);
  const Dtype activations = activation_dtype(precision);
  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  Tensor master_weights;
  const auto scored = [&]() -> ScoredModel {
    return {c.model, c.data.sequence_length, *backend, activations, master_weights};
  };
  texts->check(0, scored());
  check_memory(backend->memory(), layout, texts->bytes(0, scored()),
               "memory of the model and examples (--task-set file)",
               "leave the longest example out");
  master_weights = load_master_weights(checkpoint, layout, *backend, arena);
  const ProgressLine line;
  ordered_json row;
  try {
    row = texts->score(0, TaskSet::test, scored(), TaskShare{}, line.progress(arguments.task));
  } catch (const Error& e) {
    if (e.code() != ExitCode::nonfinite) throw;
    throw e.at(checkpoint.folder);
  }
  line.clear();

  if (arguments.task == "requests") {
    const std::string lines = lines_of(row["answers"]);
    if (arguments.output.empty()) {
      fmt::print("{}", lines);
      flush_standard_output();
    }
    write_output(arguments.output, lines);
    return 0;
  }
  ordered_json result = checkpoint_facts(checkpoint, c);
  result.update({{"tokenizer", tokenizer.sha256()},
                 {"task", texts->facts()},
                 {"precision", computed_in(precision)},
                 {"training_length", c.data.sequence_length},
                 {"scores", row}});
  result["scores"].erase("groups");
  if (row.contains("groups")) result["groups"] = row["groups"];
  // Printed first, so that hours of work survive a failed output file.
  print_prompt_scores(result);
  write_result(arguments.output, result);
  return 0;
}

}  // namespace bamtrain
