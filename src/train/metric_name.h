#pragma once
// Names of metrics: RESULT/NUMBER, such as "validation/loss" and "copy@128/accuracy". They are the
// same in configs, metrics.jsonl, results.json and studies.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "train/run_config.h"

namespace bamtrain {

inline constexpr const char* kValidationResult = "validation";

/// Results of perplexity at eval.lengths, by protocol.
inline const std::vector<std::string> kPerplexityResults = {"windows", "last"};

inline std::string result_at(const std::string& name, int64_t length) {
  return name + "@" + std::to_string(length);
}

inline std::vector<std::string> results_of(const TaskEvaluation& e) {
  std::vector<std::string> names;
  if (const auto* of_texts = std::get_if<TextTaskRequest>(&e.request)) {
    for (TextTaskPart& part : parts_of(*of_texts)) names.push_back(std::move(part.result));
    return names;
  }
  const auto& r = std::get<TaskRequest>(e.request);
  for (const int64_t length : r.lengths) names.push_back(result_at(r.name, length));
  return names;
}

/// The numbers of each of these results; `at_end`: at the end of the run, not during training.
inline std::vector<std::string> numbers_of(const TaskEvaluation& e, bool at_end) {
  if (const auto* of_texts = std::get_if<TextTaskRequest>(&e.request))
    return of_texts->info->numbers;
  std::vector<std::string> numbers = {"loss", "accuracy", "exact_match"};
  if (at_end && std::get<TaskRequest>(e.request).bleu) numbers.emplace_back("bleu");
  return numbers;
}

/// All results of a run at its end.
inline std::vector<std::string> results_of(const RunConfig& c) {
  std::vector<std::string> names;
  if (c.data.validates()) names.emplace_back(kValidationResult);
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (std::string& name : results_of(e)) names.push_back(std::move(name));
  }
  for (const std::string& protocol : kPerplexityResults) {
    for (const int64_t length : c.eval.lengths) names.push_back(result_at(protocol, length));
  }
  return names;
}

/// The metrics of the run in results.json at its end.
inline std::vector<std::string> metrics_at_end(const RunConfig& c) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& result, const std::vector<std::string>& numbers) {
    for (const std::string& number : numbers) names.push_back(result + "/" + number);
  };
  if (c.data.validates()) {
    add(kValidationResult, {"loss"});
    if (c.data.val_task) add(kValidationResult, {"accuracy", "exact_match"});
  }
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (const std::string& result : results_of(e)) add(result, numbers_of(e, true));
  }
  for (const std::string& protocol : kPerplexityResults) {
    for (const int64_t length : c.eval.lengths) {
      add(result_at(protocol, length), {"loss", "perplexity", "bits_per_byte"});
    }
  }
  return names;
}

/// The metrics available at a step, of which checkpoint.best names one.
inline std::vector<std::string> metrics_while_training(const RunConfig& c) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& result, const std::vector<std::string>& numbers) {
    for (const std::string& number : numbers) names.push_back(result + "/" + number);
  };
  if (c.data.validates()) add(kValidationResult, {"loss"});
  if (c.data.val_task) add(kValidationResult, {"accuracy", "exact_match"});
  for (const TaskEvaluation& e : c.eval.tasks) {
    if (e.every == 0) continue;
    for (const std::string& result : results_of(e)) add(result, numbers_of(e, false));
  }
  return names;
}

}  // namespace bamtrain
