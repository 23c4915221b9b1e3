// Continuations of contexts: the last words of passages (cloze), and arbitrary requests.

#include <cmath>
#include <nlohmann/json.hpp>

#include "eval/choice_scores.h"
#include "eval/log_likelihood_evaluation.h"
#include "eval/mean_json.h"
#include "prompts/request_file.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

class RequestEvaluation : public LogLikelihoodEvaluation {
 public:
  ordered_json facts() const override {
    return {{"task", request_.info->name},
            {"file", file()},
            {"bos", request_.options.flag("bos")},
            {"sha256", texts_.sha256}};
  }
  int64_t samples() const override { return std::ssize(texts_.requests); }

 protected:
  RequestEvaluation(const TextTaskRequest& r, const TextIds& ids, RequestFile texts)
      : LogLikelihoodEvaluation(r, ids), texts_(std::move(texts)) {
    for (const TextRequest& t : texts_.requests) add(t.context, t.continuation, t.line);
  }

 private:
  RequestFile texts_;
};

int64_t most_of(const TextTaskRequest& r) { return r.samples.value_or(INT64_MAX); }

class ClozeEvaluation final : public RequestEvaluation {
 public:
  ClozeEvaluation(const TextTaskRequest& r, const TextIds& ids)
      : RequestEvaluation(r, ids, read_cloze_file(r.options.text("file"), most_of(r))) {}

 private:
  ordered_json row(std::span<const LogLikelihood> found) const override {
    const ClozeScores s = cloze_scores(found);
    ordered_json row = {{"examples", s.accuracy.count}};
    put_mean(&row, "acc", s.accuracy);
    put_number(&row, "perplexity", std::exp(s.loss.mean), s.loss.error_of_exp());
    put_mean(&row, "loss", s.loss);
    return row;
  }
};

/// "answers": {"logprob", "is_greedy", "tokens"} for each line of the file.
class RequestsEvaluation final : public RequestEvaluation {
 public:
  RequestsEvaluation(const TextTaskRequest& r, const TextIds& ids)
      : RequestEvaluation(r, ids, read_request_file(r.options.text("file"), most_of(r))) {}

 private:
  ordered_json row(std::span<const LogLikelihood> found) const override {
    const ClozeScores s = cloze_scores(found);
    ordered_json row = {{"examples", s.accuracy.count}};
    put_mean(&row, "greedy", s.accuracy);
    put_mean(&row, "loss", s.loss);
    row["answers"] = ordered_json::array();
    for (size_t i = 0; i < found.size(); ++i) {
      row["answers"].push_back(
          {{"logprob", found[i].logprob}, {"is_greedy", found[i].greedy}, {"tokens", tokens(i)}});
    }
    return row;
  }
};

}  // namespace

std::unique_ptr<TextEvaluation> cloze_evaluation(const TextTaskRequest& r, const TextIds& ids) {
  return std::make_unique<ClozeEvaluation>(r, ids);
}

std::unique_ptr<TextEvaluation> requests_evaluation(const TextTaskRequest& r, const TextIds& ids) {
  return std::make_unique<RequestsEvaluation>(r, ids);
}

}  // namespace bamtrain
