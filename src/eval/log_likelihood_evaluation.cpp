#include "eval/log_likelihood_evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace bamtrain {

void LogLikelihoodEvaluation::add(const std::string& context, const std::string& continuation,
                                  int64_t line) {
  places_.push_back(fmt::format("{}:{}", file(), line));
  requests_.push_back(encoder_.encode(context, continuation, places_.back()));
}

void LogLikelihoodEvaluation::check(size_t, const ScoredModel& model) const {
  const size_t longest = longest_request(requests_);
  const int64_t tokens = std::ssize(requests_[longest].ids);
  try {
    make_network(model.config, model.training_length, model.backend, model.activations)
        ->check_length(tokens - 1);
  } catch (const Error& e) {
    throw e.with(fmt::format("the longest text has {} tokens: {}", tokens, places_[longest]));
  }
}

int64_t LogLikelihoodEvaluation::bytes(size_t, const ScoredModel& model) const {
  int64_t ids = 0;
  for (const EncodedRequest& r : requests_) ids += std::ssize(r.ids);
  return log_likelihoods_bytes(requests_, model) + ids * static_cast<int64_t>(sizeof(int32_t));
}

nlohmann::ordered_json LogLikelihoodEvaluation::score(size_t, TaskSet, const ScoredModel& model,
                                                      const TaskShare& share,
                                                      const TaskProgress& progress) const {
  const std::vector<LogLikelihood> found =
      log_likelihoods(requests_, model, ids_.document_start, share, progress);
  require_finite(found);
  return row(found);
}

void LogLikelihoodEvaluation::require_finite(std::span<const LogLikelihood> found) const {
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = found[i].logprob;
    if (std::isfinite(x)) continue;
    throw Error(ExitCode::nonfinite, "the weights", "finite log-likelihoods",
                fmt::format("{} at {}", std::isnan(x) ? "NaN" : "infinity", places_[i]),
                "try --precision fp32, then an earlier checkpoint");
  }
}

}  // namespace bamtrain
