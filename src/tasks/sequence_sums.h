#pragma once
// What a pass over sequences adds up, one sequence at a time: losses and right answers.

#include <algorithm>
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
    s.targets += targets[i] != kIgnoreIndex;
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

/// As many sequences as the Chomsky benchmark's code evaluates at a time. They have a length in
/// common where a step's have, and random positions or distances where those are a step's; and
/// where answers end at a terminator, accuracy is that of all their places, and its mean over such
/// batches.
inline constexpr int64_t kPublishedBatch = 64;

/// Of answers by the likeliest class at every place, each behind the right ones before it.
struct TaskScores {
  ClusteredMean accuracy;  // of places
  ClusteredMean exact;     // of sequences: all places are right
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
