// bamtrain eval --task passkey: BAM's number inside filler; --task niah: RULER's tasks, or prompts
// from a file. Scores against length and depth.

#include <algorithm>

#include "commands/eval_result.h"
#include "commands/retrieval.h"
#include "commands/text_request.h"
#include "config/evaluations.h"

namespace bamtrain {

namespace {

/// Writes a line for each text that the model would be asked. Errors as TextEvaluation::check and
/// check_output.
void write_prompts(const TextEvaluation& evaluation, const ScoredModel& model,
                   const std::string& path) {
  check_output(path, "--write-prompts");
  std::string lines;
  for (size_t part = 0; part < evaluation.parts().size(); ++part) {
    evaluation.check(part, model);
    for (const auto& text : evaluation.texts(part)) lines += text.dump() + "\n";
  }
  write_output(path, lines);
}

}  // namespace

int run_eval_retrieval(const EvalArguments& arguments) {
  const TextTaskInfo& info = *find_text_task(arguments.task);
  const Options settings = text_settings(arguments);
  const bool writes =
      info.name == "niah" || (settings.has("generate") && settings.flag("generate"));
  const std::string tokenizer = settings.has("tokenizer") ? settings.text("tokenizer") : "";
  RetrievalModel model(arguments, tokenizer, writes);
  const TextTaskRequest request =
      text_request(arguments, settings, measured_options(info, model.config().data.train.list));
  try {
    const std::unique_ptr<TextEvaluation> texts = open_text_evaluation(request, model.ids());
    const std::vector<TextTaskPart>& parts = texts->parts();
    if (!arguments.prompts.empty()) {
      write_prompts(*texts, model.scored(), arguments.prompts);
      return 0;
    }
    RetrievalResult result(arguments.output,
                           model.facts(texts->facts(), texts->samples(), request.seed), parts,
                           info.numbers, texts->depths());
    int64_t bytes = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (result.has(i)) continue;
      texts->check(i, model.scored());
      bytes = std::max(bytes, texts->bytes(i, model.scored()));
    }
    if (bytes > 0) {
      model.check_memory(bytes);
      model.load();
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (result.has(i)) continue;
      result.put(i,
                 texts->score(i, TaskSet::test, model.scored(), TaskShare{}, result.progress(i)));
    }
    result.finish();
  } catch (const Error& e) {
    if (e.code() == ExitCode::nonfinite) throw e.at(arguments.checkpoint + ": " + e.where());
    throw at_option(e);
  }
  return 0;
}

}  // namespace bamtrain
