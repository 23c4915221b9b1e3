#pragma once
// A task at lengths that were not trained: loss, accuracy and exact match against source length.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/data_config.h"
#include "model/network.h"

namespace bamtrain {

/// Progress of a long evaluation: the share of a length that is done.
using TaskProgress = std::function<void(double)>;

/// Which of a length's sequences a process takes, and how what they give meets.
struct TaskShare {
  int rank = 0, processes = 1;
  /// The sum over all processes, in place; called with one process too.
  std::function<void(double* values, int64_t count)> sum = [](double*, int64_t) {};
};

/// Sequences of which results are, and those by which a checkpoint is chosen while a run goes on.
enum class TaskSet { test, select };

/// A trained model in memory.
struct ScoredModel {
  const ModelConfig& config;
  int64_t training_length;
  Backend& backend;
  Dtype activations;
  const Tensor& master_weights;
};

/// Error (ExitCode::config) for a model that would count the padding behind texts and sequences.
void check_padded(const ModelConfig& config);

/// Everything that score_task would refuse of a request, before any time is spent. Error
/// (ExitCode::usage) for lengths that the task has not, for a task whose ids the model has not or
/// whose positions read all others, and as Network::check_length.
void check_task_request(const TaskRequest& request, const ScoredModel& model);

/// Evaluates the model on `request.samples` sequences of one length, those of the set and the seed:
/// the same for every model. Answers are the likeliest token at each place behind the right ones
/// before it (tasks/score.h). The accuracy of a task with a terminator is the mean over batches of
/// 64 sequences, as the Chomsky benchmark's is. Positions that the model draws in evaluation are
/// functions of the seed, the set, the length and the sequence's number, or that of its batch
/// of 64. Collective; the same bits for every number of processes.
/// {"loss", "loss_error", "accuracy", "accuracy_error", "exact_match", "exact_match_error",
///  "targets", "sequences"}; errors as core/clustered_mean.h, by sequence, null where unknown.
/// REQUIRES: check_task_request accepts the request, which has the length.
nlohmann::ordered_json score_task(const TaskRequest& request, int64_t length, TaskSet set,
                                  const ScoredModel& model, const TaskShare& share,
                                  const TaskProgress& progress);

/// The sequences of that length.
Task sequences_of(const TaskRequest& request, int64_t length, TaskSet set);

/// Memory that it takes beside the master weights for the longest of the lengths.
int64_t task_scores_bytes(const TaskRequest& request, const ScoredModel& model);

}  // namespace bamtrain
