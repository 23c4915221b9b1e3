#pragma once
// Multiple-choice and cloze metrics, from log-likelihoods.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clustered_mean.h"
#include "eval/log_likelihoods.h"

namespace bamtrain {

/// A model's scores for one question.
struct ChoiceAnswer {
  std::vector<double> logprobs;             // of the choices
  std::vector<int64_t> characters, tokens;  // their code points and ids; at least 1
  size_t gold = 0;
  std::string group;  // empty: no group
};

struct ChoiceScores {
  ClusteredMean accuracy;      // share of questions whose likeliest choice is correct
  ClusteredMean by_character;  // the same, ranked by logprob / characters
  ClusteredMean by_token;      // ranked by logprob / tokens: the lowest mean loss
};

/// Ties go to the first choice, as with numpy.argmax. Means are over questions; standard errors are
/// of a sample (n - 1), as in lm-evaluation-harness, and unknown for a single question. REQUIRES:
/// at least one question, finite log-probabilities, choices in each.
ChoiceScores choice_scores(std::span<const ChoiceAnswer> answers);

/// The same for each group by name; empty without groups. Their mean, weighted by size, is the mean
/// over all questions that have a group.
std::map<std::string, ChoiceScores> scores_by_group(std::span<const ChoiceAnswer> answers);

struct ClozeScores {
  ClusteredMean accuracy;  // share of words whose every token is the likeliest
  ClusteredMean loss;      // -log p(word), nats; its exp is the perplexity
};

/// REQUIRES: at least one word, finite log-probabilities.
ClozeScores cloze_scores(std::span<const LogLikelihood> words);

}  // namespace bamtrain
