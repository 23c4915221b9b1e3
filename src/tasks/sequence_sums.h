#pragma once
// Sums of a pass over sequences, one sequence at a time: losses and right answers.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/clustered_mean.h"
#include "tasks/score.h"

namespace bamtrain {

/// Sums of one sequence; all are numbers that processes can add up.
struct SequenceSums {
  double loss = 0, targets = 0, compared = 0, right = 0;
  static constexpr int64_t kNumbers = 4;
};
static_assert(sizeof(SequenceSums) == SequenceSums::kNumbers * sizeof(double));

/// Sums over the losses, targets and answers of a sequence's positions. If `answers` is empty,
/// nothing is compared. REQUIRES: equal sizes, or no answers.
inline SequenceSums sequence_sums(std::span<const double> losses, std::span<const int32_t> targets,
                                  std::span<const int32_t> answers, int32_t terminator) {
  SequenceSums s;
  for (size_t i = 0; i < targets.size(); ++i) {
    s.loss += losses[i];
    s.targets += targets[i] != kIgnoreIndex;
  }
  if (answers.empty()) return s;
  const Score of_answers = score(targets, answers, terminator);
  s.compared = static_cast<double>(of_answers.compared);
  s.right = static_cast<double>(of_answers.right);
  return s;
}

/// Mean loss over targets, clustered by sequence.
inline ClusteredMean mean_loss(std::span<const SequenceSums> sequences) {
  std::vector<Cluster> clusters;
  for (const SequenceSums& s : sequences) {
    clusters.push_back({s.loss, static_cast<int64_t>(s.targets)});
  }
  return clustered_mean(clusters);
}

/// The number of sequences per evaluation batch in the Chomsky benchmark's code. Where a step's
/// sequences share a length, or random positions or distances, so do these. If answers end at a
/// terminator, accuracy is computed over all their positions and averaged over such batches.
inline constexpr int64_t kPublishedBatch = 64;

/// Scores of the likeliest class at every position, given the right answers before it.
struct TaskScores {
  ClusteredMean accuracy;  // share of positions
  ClusteredMean exact;     // share of sequences with all positions right
};

/// `terminated`: the task's answers end at a terminator.
inline TaskScores task_scores(std::span<const SequenceSums> sequences, bool terminated) {
  std::vector<Cluster> places, whole;
  for (const SequenceSums& s : sequences) {
    places.push_back({s.right, static_cast<int64_t>(s.compared)});
    whole.push_back({s.right == s.compared ? 1.0 : 0.0, 1});
  }
  if (!terminated) return {clustered_mean(places), clustered_mean(whole)};
  std::vector<Cluster> batches;
  for (size_t first = 0; first < sequences.size(); first += kPublishedBatch) {
    double right = 0, compared = 0;
    for (size_t i = first; i < std::min(first + kPublishedBatch, sequences.size()); ++i) {
      right += sequences[i].right;
      compared += sequences[i].compared;
    }
    batches.push_back({right / compared, 1});
  }
  return {clustered_mean(batches), clustered_mean(whole)};
}

}  // namespace bamtrain
