#include "eval/choice_scores.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace bamtrain {

namespace {

size_t first_highest(const std::vector<double>& scores) {
  require(!scores.empty() &&
              std::all_of(scores.begin(), scores.end(), [](double x) { return std::isfinite(x); }),
          "finite scores of choices");
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

bool is_right(const ChoiceAnswer& a) { return first_highest(a.logprobs) == a.gold; }

/// Divides each score by the choice's size, in characters or tokens.
bool is_right(const ChoiceAnswer& a, const std::vector<int64_t>& sizes) {
  require(sizes.size() == a.logprobs.size(), "as many sizes as choices");
  std::vector<double> scores = a.logprobs;
  for (size_t i = 0; i < scores.size(); ++i) {
    require(sizes[i] >= 1, "a choice that is not empty");
    scores[i] /= static_cast<double>(sizes[i]);
  }
  return first_highest(scores) == a.gold;
}

Cluster one(double value) { return {value, 1}; }

}  // namespace

ChoiceScores choice_scores(std::span<const ChoiceAnswer> answers) {
  std::vector<Cluster> right, by_character, by_token;
  for (const ChoiceAnswer& a : answers) {
    right.push_back(one(is_right(a)));
    by_character.push_back(one(is_right(a, a.characters)));
    by_token.push_back(one(is_right(a, a.tokens)));
  }
  return {clustered_mean(right), clustered_mean(by_character), clustered_mean(by_token)};
}

std::map<std::string, ChoiceScores> scores_by_group(std::span<const ChoiceAnswer> answers) {
  std::map<std::string, std::vector<ChoiceAnswer>> groups;
  for (const ChoiceAnswer& a : answers) {
    if (!a.group.empty()) groups[a.group].push_back(a);
  }
  std::map<std::string, ChoiceScores> scores;
  for (const auto& [name, of_group] : groups) scores[name] = choice_scores(of_group);
  return scores;
}

ClozeScores cloze_scores(std::span<const LogLikelihood> words) {
  std::vector<Cluster> right, losses;
  for (const LogLikelihood& word : words) {
    require(std::isfinite(word.logprob), "finite log-probabilities");
    right.push_back(one(word.greedy));
    losses.push_back(one(-word.logprob));
  }
  return {clustered_mean(right), clustered_mean(losses)};
}

}  // namespace bamtrain
