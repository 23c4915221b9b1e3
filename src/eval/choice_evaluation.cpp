// Multiple choice: finds the likeliest continuation of each question.

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/sha256.h"
#include "eval/choice_scores.h"
#include "eval/log_likelihood_evaluation.h"
#include "eval/mean_json.h"
#include "prompts/choice_file.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

ordered_json row_of(const ChoiceScores& s, const ChoiceFormat& format) {
  ordered_json row = {{"examples", s.accuracy.count}};
  put_mean(&row, "acc", s.accuracy);
  if (!format.normalized) return row;
  put_mean(&row, "acc_norm", s.by_character);
  put_mean(&row, "acc_token", s.by_token);
  return row;
}

class ChoiceEvaluation final : public LogLikelihoodEvaluation {
 public:
  ChoiceEvaluation(const TextTaskRequest& r, const TextIds& ids) : LogLikelihoodEvaluation(r, ids) {
    const std::string& format = r.options.text("format");
    questions_ = read_choice_file(
        file(), format == "auto" ? nullptr : &choice_format(format, "{format}"), most());
    const std::string& shots = r.options.text("shots_file");
    if (integer("shots") > 0) shots_sha256_ = sha256_file(shots);
    if (shots_sha256_ == questions_.sha256) {
      throw Error(ExitCode::config, "{shots_file}", "a file other than that of the examples",
                  "a copy of them, " + shots,
                  "name another file: an example would be asked after its own answer");
    }
    prepend_few_shot(&questions_, shots, integer("shots"));
    for (const ChoiceExample& e : questions_.examples) {
      for (size_t i = 0; i < e.choices(); ++i) add(e.context(i), e.continuation(i), e.line);
    }
  }

  ordered_json facts() const override {
    ordered_json task = {{"task", "choice"},
                         {"file", file()},
                         {"bos", request_.options.flag("bos")},
                         {"sha256", questions_.sha256},
                         {"format", questions_.format->name},
                         {"shots", integer("shots")}};
    if (integer("shots") > 0) {
      task.update(
          {{"shots_file", request_.options.text("shots_file")}, {"shots_sha256", shots_sha256_}});
    }
    return task;
  }
  int64_t samples() const override { return std::ssize(questions_.examples); }

 private:
  ordered_json row(std::span<const LogLikelihood> found) const override {
    std::vector<ChoiceAnswer> answers;
    size_t request = 0;
    for (const ChoiceExample& e : questions_.examples) {
      ChoiceAnswer answer = {{}, e.characters, {}, e.gold, e.group};
      for (size_t i = 0; i < e.choices(); ++i, ++request) {
        answer.logprobs.push_back(found[request].logprob);
        answer.tokens.push_back(tokens(request));
      }
      answers.push_back(std::move(answer));
    }
    ordered_json row = row_of(choice_scores(answers), *questions_.format);
    for (const auto& [group, scores] : scores_by_group(answers)) {
      ordered_json of_group = {{"group", group}};
      of_group.update(row_of(scores, *questions_.format));
      row["groups"].push_back(std::move(of_group));
    }
    return row;
  }

  ChoiceFile questions_;
  std::string shots_sha256_;  // empty: no shots
};

}  // namespace

std::unique_ptr<TextEvaluation> choice_evaluation(const TextTaskRequest& r, const TextIds& ids) {
  return std::make_unique<ChoiceEvaluation>(r, ids);
}

}  // namespace bamtrain
