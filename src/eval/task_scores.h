#pragma once
// Evaluates a task at lengths outside of training: loss, accuracy and exact match against source
// length.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/data_config.h"
#include "model/network.h"

namespace bamtrain {

/// Progress of a long evaluation: share of a length done.
using TaskProgress = std::function<void(double)>;

/// How processes divide the sequences of a length and combine their results.
struct TaskShare {
  int rank = 0, processes = 1;
  /// Sums over all processes, in place; also called with a single process.
  std::function<void(double* values, int64_t count)> sum = [](double*, int64_t) {};
};

/// test: sequences for results; select: sequences for choosing a checkpoint during training.
enum class TaskSet { test, select };

/// A trained model in memory.
struct ScoredModel {
  const ModelConfig& config;
  int64_t training_length;
  Backend& backend;
  Dtype activations;
  const Tensor& master_weights;
};

/// Throws Error (ExitCode::config) for a model that would count the padding after texts and
/// sequences.
void check_padded(const ModelConfig& config);

/// Checks everything that score_task would refuse, before any time is spent. Throws Error
/// (ExitCode::usage) for lengths outside the task's range, for more ids or classes than the model
/// has, and for a task and model that differ in kind (items or tokens) or in causality. Errors also
/// as Network::check_length and check_padded.
void check_task_request(const TaskRequest& request, const ScoredModel& model);

/// Evaluates the model on `request.samples` sequences of one length, drawn from the set and the
/// seed and thus the same for every model. Answers are the likeliest token at each position given
/// the right ones before it (tasks/score.h). The accuracy of a task with a terminator is the mean
/// over batches of 64 sequences, as in the Chomsky benchmark. Randomized positions in evaluation
/// are functions of the seed, the set, the length and the sequence's number, or that of its batch
/// of 64. Collective; bitwise identical for any number of processes. Returns
/// {"loss", "loss_error", "accuracy", "accuracy_error", "exact_match", "exact_match_error",
///  "targets", "sequences"}; errors as core/clustered_mean.h, by sequence, null if unknown.
/// REQUIRES: check_task_request accepts the request, which includes the length.
nlohmann::ordered_json score_task(const TaskRequest& request, int64_t length, TaskSet set,
                                  const ScoredModel& model, const TaskShare& share,
                                  const TaskProgress& progress);

/// The task's sequences of that length.
Task sequences_of(const TaskRequest& request, int64_t length, TaskSet set);

/// Memory used in addition to the master weights, for the longest length.
int64_t task_scores_bytes(const TaskRequest& request, const ScoredModel& model);

}  // namespace bamtrain
