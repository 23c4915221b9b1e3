#pragma once
// The common base of choice, cloze and requests: continuations of a file scored given their
// contexts, in one part.

#include <span>
#include <string>
#include <vector>

#include "eval/log_likelihoods.h"
#include "eval/text_evaluation.h"
#include "prompts/encoded_request.h"

namespace bamtrain {

class LogLikelihoodEvaluation : public TextEvaluation {
 public:
  /// Nothing is truncated: a text that is too long for the model is an error.
  void check(size_t part, const ScoredModel& model) const override;
  int64_t bytes(size_t part, const ScoredModel& model) const override;
  nlohmann::ordered_json score(size_t part, TaskSet set, const ScoredModel& model,
                               const TaskShare& share, const TaskProgress& progress) const override;

 protected:
  LogLikelihoodEvaluation(const TextTaskRequest& r, const TextIds& ids)
      : TextEvaluation(r, ids),
        encoder_(ids.tokenizer, ids.document_start, r.options.flag("bos")) {}

  const std::string& file() const { return request_.options.text("file"); }
  int64_t most() const { return request_.samples.value_or(INT64_MAX); }
  /// Errors as RequestEncoder::encode.
  void add(const std::string& context, const std::string& continuation, int64_t line);
  /// Tokens of the request's continuation.
  int64_t tokens(size_t request) const {
    return std::ssize(requests_[request].ids) - requests_[request].begin;
  }

  /// Returns the row of results; `found` is finite and in the order of add().
  virtual nlohmann::ordered_json row(std::span<const LogLikelihood> found) const = 0;

 private:
  void require_finite(std::span<const LogLikelihood> found) const;

  RequestEncoder encoder_;
  std::vector<EncodedRequest> requests_;
  std::vector<std::string> places_;  // FILE:LINE of each request
};

}  // namespace bamtrain
