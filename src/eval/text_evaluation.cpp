#include "eval/text_evaluation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/error.h"
#include "core/memory_source.h"

namespace bamtrain {

std::unique_ptr<TextEvaluation> open_text_evaluation(const TextTaskRequest& request,
                                                     const TextIds& ids) {
  const std::string& task = request.info->name;
  if (task == "passkey") return passkey_evaluation(request, ids);
  if (task == "niah") return needle_evaluation(request, ids);
  if (task == "choice") return choice_evaluation(request, ids);
  if (task == "cloze") return cloze_evaluation(request, ids);
  require(task == "requests", "a task of text_tasks()");
  return requests_evaluation(request, ids);
}

std::vector<nlohmann::ordered_json> TextEvaluation::texts(size_t) const {
  broken_contract("a task that draws texts");
}

void check_texts_fit(int64_t texts, int64_t length) {
  constexpr int64_t kBytesOfToken = 16;  // a string and its line; English mostly needs half
  try {
    host_memory().check_fits(
        checked_mul(texts, checked_mul(length, kBytesOfToken, "samples"), "samples"));
  } catch (const Error& e) {
    throw e.as(ExitCode::device, fmt::format("memory of {} prompts", texts),
               "lower the number of samples");
  }
}

void check_text_length(int64_t tokens, const std::string& what, const ScoredModel& model) {
  check_padded(model.config);
  try {
    make_network(model.config, model.training_length, model.backend, model.activations)
        ->check_length(tokens);
  } catch (const Error& e) {
    throw e.with(
        fmt::format("the longest text of {}, with its answer, has {} tokens", what, tokens));
  }
}

}  // namespace bamtrain
