#pragma once
// Names of what runs are measured by: RESULT/NUMBER, as "validation/loss" and "copy@128/accuracy".
// The same in configs, metrics.jsonl, results.json and studies.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace bamtrain {

inline constexpr const char* kValidationResult = "validation";

/// Of perplexity at eval.lengths, by protocol.
inline const std::vector<std::string> kPerplexityResults = {"windows", "last"};

inline std::string result_at(const std::string& name, int64_t length) {
  return name + "@" + std::to_string(length);
}

/// Of all results that the run has at its end.
inline std::vector<std::string> results_of(const RunConfig& c) {
  std::vector<std::string> names;
  if (c.data.validates()) names.emplace_back(kValidationResult);
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (const int64_t length : e.request.lengths) {
      names.push_back(result_at(e.request.name, length));
    }
  }
  for (const std::string& protocol : kPerplexityResults) {
    for (const int64_t length : c.eval.lengths) names.push_back(result_at(protocol, length));
  }
  return names;
}

/// What results.json has of the run at its end.
inline std::vector<std::string> metrics_at_end(const RunConfig& c) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& result, std::initializer_list<const char*> numbers) {
    for (const char* const number : numbers) names.push_back(result + "/" + number);
  };
  if (c.data.validates()) {
    add(kValidationResult, {"loss"});
    if (c.data.val_task) add(kValidationResult, {"accuracy", "exact_match"});
  }
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (const int64_t length : e.request.lengths) {
      const std::string result = result_at(e.request.name, length);
      add(result, {"loss", "accuracy", "exact_match"});
      if (e.request.bleu) add(result, {"bleu"});
    }
  }
  for (const std::string& protocol : kPerplexityResults) {
    for (const int64_t length : c.eval.lengths) {
      add(result_at(protocol, length), {"loss", "perplexity", "bits_per_byte"});
    }
  }
  return names;
}

/// What a step of the run may be measured by, of which checkpoint.best names one.
inline std::vector<std::string> metrics_while_training(const RunConfig& c) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& result, bool answers) {
    names.push_back(result + "/loss");
    if (!answers) return;
    names.push_back(result + "/accuracy");
    names.push_back(result + "/exact_match");
  };
  if (c.data.validates()) add(kValidationResult, c.data.val_task.has_value());
  for (const TaskEvaluation& e : c.eval.tasks) {
    if (e.every == 0) continue;
    for (const int64_t length : e.request.lengths) add(result_at(e.request.name, length), true);
  }
  return names;
}

}  // namespace bamtrain
