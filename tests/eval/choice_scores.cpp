// Metrics, compared with numbers worked out by hand.

#include "eval/choice_scores.h"

#include <cmath>

#include "catch.h"

using namespace bamtrain;

namespace {

/// Four questions.
/// - By log-probability: right, wrong, right (the first of equals), wrong.
/// - By character: wrong (-2/1 < -3/2), right (-4/8 > -3/2), right, wrong.
/// - By token: right (-2/2 > -3/1), right (-4/2 > -3/1), wrong (-1/1 < -5/10), wrong.
std::vector<ChoiceAnswer> answers() {
  return {{{-2, -3}, {1, 2}, {2, 1}, 0, "b"},
          {{-3, -4}, {2, 8}, {1, 2}, 1, "a"},
          {{-5, -1, -1}, {1, 1, 1}, {10, 1, 1}, 1, "b"},
          {{-1, -2}, {1, 1}, {1, 1}, 1, "b"}};
}

}  // namespace

TEST_CASE("accuracies of four questions") {
  const ChoiceScores s = choice_scores(answers());
  CHECK(s.accuracy.mean == 0.5);
  // Each answer is 1/2 off the mean: sqrt(4 (1/4) / 3) / sqrt(4).
  CHECK(*s.accuracy.error == Approx(std::sqrt(1.0 / 3) / 2).epsilon(1e-15));
  CHECK(s.accuracy.count == 4);
  CHECK(s.by_character.mean == 0.5);
  CHECK(s.by_token.mean == 0.5);
}

TEST_CASE("accuracies of groups, and their weights") {
  const std::vector<ChoiceAnswer> all = answers();
  const std::map<std::string, ChoiceScores> groups = scores_by_group(all);
  REQUIRE(groups.size() == 2);
  const ChoiceScores &a = groups.at("a"), &b = groups.at("b");
  CHECK(a.accuracy.mean == 0);
  CHECK_FALSE(a.accuracy.error);  // one question
  CHECK(a.by_character.mean == 1);
  CHECK(a.by_token.mean == 1);
  CHECK(b.accuracy.mean == Approx(2.0 / 3).epsilon(1e-15));
  // Answers 1, 1, 0: sqrt((1/9 + 1/9 + 4/9) / 2) / sqrt(3) = 1/3.
  CHECK(*b.accuracy.error == Approx(1.0 / 3).epsilon(1e-15));
  CHECK(b.by_character.mean == Approx(1.0 / 3).epsilon(1e-15));
  CHECK(b.by_token.mean == Approx(1.0 / 3).epsilon(1e-15));
  // (1 * 0 + 3 * 2/3) / 4, the way MMLU weights its subjects.
  CHECK(choice_scores(all).accuracy.mean ==
        Approx((a.accuracy.mean + 3 * b.accuracy.mean) / 4).epsilon(1e-15));

  std::vector<ChoiceAnswer> alone = all;
  for (ChoiceAnswer& answer : alone) answer.group.clear();
  CHECK(scores_by_group(alone).empty());
}

TEST_CASE("accuracy and perplexity of last words") {
  const std::vector<LogLikelihood> words = {{-1, true}, {-3, false}, {-2, true}};
  const ClozeScores s = cloze_scores(words);
  CHECK(s.accuracy.mean == Approx(2.0 / 3).epsilon(1e-15));
  CHECK(s.loss.mean == 2);
  CHECK(std::exp(s.loss.mean) == Approx(7.38905609893065).epsilon(1e-14));
  CHECK(*s.loss.error == Approx(1 / std::sqrt(3)).epsilon(1e-15));  // deviations -1, 1, 0
}
