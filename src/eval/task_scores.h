#pragma once
// A task at lengths that were not trained: loss, accuracy and exact match against source length.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "model/model.h"

namespace bamtrain {

struct TaskRequest {
  TaskChoice task;               // its lengths are not read
  std::vector<int64_t> lengths;  // of sources, ascending, unique
  int64_t samples = 1000;        // sequences at each
  uint64_t seed = 0;
};

/// Progress of a long evaluation: length, share done.
using TaskProgress = std::function<void(int64_t, double)>;

/// Everything that score_task would refuse, before any time is spent. Error (ExitCode::usage) for
/// lengths that the task has not, and for a task whose ids the model has not or whose positions
/// read all others.
void check_task_request(const TaskRequest& request, const ModelConfig& config);

/// Evaluates a model whose masters hold the trained weights on `samples` sequences of each length,
/// those of set "test" of the seed: the same for every model. Answers are the likeliest token at
/// each place behind the right ones before it (tasks/score.h). A row per length:
/// {"length", "loss", "loss_error", "accuracy", "accuracy_error", "exact_match",
///  "exact_match_error", "targets", "sequences"}; errors as core/clustered_mean.h, by sequence.
nlohmann::ordered_json score_task(const TaskRequest& request, const ModelConfig& config,
                                  int64_t training_length, Backend& backend, Dtype activations,
                                  const Tensor& masters, const TaskProgress& progress);

}  // namespace bamtrain
