#pragma once
// What a pass over sequences adds up, one sequence at a time: losses and right answers.

#include <cstdint>
#include <span>
#include <vector>

#include "core/clustered_mean.h"
#include "tasks/score.h"

namespace bamtrain {

/// Of a sequence; all of them numbers that processes add up.
struct SequenceSums {
  double loss = 0, targets = 0, compared = 0, right = 0;
  static constexpr int64_t kNumbers = 4;
};
static_assert(sizeof(SequenceSums) == SequenceSums::kNumbers * sizeof(double));

/// Of the losses, targets and answers at a sequence's places; no answers: nothing is compared.
/// REQUIRES: of one size, or no answers.
inline SequenceSums sequence_sums(std::span<const double> losses, std::span<const int32_t> targets,
                                  std::span<const int32_t> answers, int32_t terminator) {
  SequenceSums s;
  for (size_t i = 0; i < targets.size(); ++i) {
    s.loss += losses[i];
    s.targets += targets[i] != kNoTarget;
  }
  if (answers.empty()) return s;
  const Score of_answers = score(targets, answers, terminator);
  s.compared = static_cast<double>(of_answers.compared);
  s.right = static_cast<double>(of_answers.right);
  return s;
}

/// The mean over targets, whose clusters are the sequences.
inline ClusteredMean mean_loss(std::span<const SequenceSums> sequences) {
  std::vector<Cluster> clusters;
  for (const SequenceSums& s : sequences) {
    clusters.push_back({s.loss, static_cast<int64_t>(s.targets)});
  }
  return clustered_mean(clusters);
}

/// Of answers by the likeliest class at every place, each behind the right ones before it.
struct TaskScores {
  ClusteredMean accuracy;  // of places
  ClusteredMean exact;     // of sequences: all places are right
};

inline TaskScores task_scores(std::span<const SequenceSums> sequences) {
  std::vector<Cluster> places, whole;
  for (const SequenceSums& s : sequences) {
    places.push_back({s.right, static_cast<int64_t>(s.compared)});
    whole.push_back({s.right == s.compared ? 1.0 : 0.0, 1});
  }
  return {clustered_mean(places), clustered_mean(whole)};
}

}  // namespace bamtrain
