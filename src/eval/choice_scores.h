#pragma once
// Metrics of multiple choice and of cloze, from log-likelihoods.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clustered_mean.h"
#include "eval/log_likelihoods.h"

namespace bamtrain {

/// How a model answered a question.
struct ChoiceAnswer {
  std::vector<double> logprobs;             // of the choices
  std::vector<int64_t> characters, tokens;  // likewise: code points, and ids; 1 at least
  size_t gold = 0;
  std::string group;  // empty: none
};

struct ChoiceScores {
  ClusteredMean accuracy;      // share of the questions whose likeliest choice is the right one
  ClusteredMean by_character;  // the same of the choice of the highest logprob / characters
  ClusteredMean by_token;      // and of logprob / tokens: the lowest mean loss
};

/// Of equal choices the first is taken, as numpy.argmax does. Means over questions, whose standard
/// errors are those of a sample of them (n - 1), as lm-evaluation-harness's: unknown of one.
/// REQUIRES: a question, finite log-probabilities, choices in each.
ChoiceScores choice_scores(std::span<const ChoiceAnswer> answers);

/// The same of each group by its name; nothing where there are none. The mean over all questions is
/// that of these, weighted by their sizes.
std::map<std::string, ChoiceScores> scores_by_group(std::span<const ChoiceAnswer> answers);

struct ClozeScores {
  ClusteredMean accuracy;  // share of the words of which every token is the likeliest
  ClusteredMean loss;      // -log p(word), nats; exp of it is the perplexity
};

/// REQUIRES: a word, finite log-probabilities.
ClozeScores cloze_scores(std::span<const LogLikelihood> words);

}  // namespace bamtrain
