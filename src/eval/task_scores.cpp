#include "eval/task_scores.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/clustered_mean.h"
#include "core/error.h"
#include "data/sequences.h"
#include "tasks/score.h"

namespace bamtrain {

namespace {

std::shared_ptr<const Task> test_set(const TaskRequest& request, int64_t length) {
  return std::make_shared<const Task>(*request.task.info, request.task.options,
                                      LengthRange{length, length}, request.seed, "test");
}

void write(nlohmann::ordered_json& row, const std::string& name,
           const std::vector<Cluster>& clusters) {
  const ClusteredMean mean = clustered_mean(clusters);
  row[name] = mean.mean;
  row[name + "_error"] = nullptr;
  if (mean.error) row[name + "_error"] = *mean.error;
}

nlohmann::ordered_json score_length(const TaskRequest& request, int64_t length,
                                    const ModelConfig& config, int64_t training_length,
                                    Backend& backend, Dtype activations, const Tensor& masters,
                                    const TaskProgress& progress) {
  const std::shared_ptr<const Task> task = test_set(request, length);
  const TaskInfo& info = task->info();
  const int64_t T = task->most_inputs(), B = std::min(evaluation_batch(T), request.samples);
  Model model(config, training_length, backend, activations);
  Arena arena;
  model.plan(arena, B, T, ModelUse::evaluation);
  arena.commit(backend.memory());
  model.set_masters(masters);
  model.refresh();
  Sequences sequences(nullptr, {{task, 1}}, T, B);
  const auto N = static_cast<size_t>(B * T);
  std::vector<int32_t> inputs(N), targets(N), answers(N);
  std::vector<double> losses(N);
  std::vector<Cluster> loss, places, whole;
  int64_t counted = 0;
  for (int64_t first = 0; first < request.samples; first += B) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(B, request.samples - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const auto rows = std::ssize(numbers);
    SequenceCounts counts;
    const int64_t t = sequences.read(numbers, first / B, inputs.data(), targets.data(), &counts);
    counted += counts.targets;
    model.evaluate(inputs.data(), targets.data(), rows, t, std::nullopt, losses.data(), nullptr,
                   answers.data());
    for (int64_t b = 0; b < rows; ++b) {
      const auto row = [&](const auto& of) {
        return std::span(of).subspan(static_cast<size_t>(b * t), static_cast<size_t>(t));
      };
      Cluster own;
      for (int64_t i = 0; i < t; ++i) {
        const auto at = static_cast<size_t>(b * t + i);
        if (targets[at] != kNoTarget) own.add(losses[at]);
      }
      const Score s = score(row(targets), row(answers), info.terminator);
      loss.push_back(own);
      places.push_back({static_cast<double>(s.right), s.compared});
      whole.push_back({s.exact() ? 1.0 : 0.0, 1});
    }
    progress(length, static_cast<double>(first + rows) / static_cast<double>(request.samples));
  }
  nlohmann::ordered_json row = {{"length", length}};
  write(row, "loss", loss);
  write(row, "accuracy", places);
  write(row, "exact_match", whole);
  row["targets"] = counted;
  row["sequences"] = request.samples;
  return row;
}

}  // namespace

void check_task_request(const TaskRequest& request, const ModelConfig& config) {
  const TaskInfo& info = *request.task.info;
  require(!request.lengths.empty() && request.samples >= 1, "lengths and samples");
  const int64_t shortest = request.lengths.front(), longest = request.lengths.back();
  if (shortest < info.least_length || longest > info.most_length) {
    throw Error(ExitCode::usage, "--lengths",
                "lengths from " + std::to_string(info.least_length) + " to " +
                    std::to_string(info.most_length) + ", of \"" + info.name + "\"",
                std::to_string(shortest < info.least_length ? shortest : longest),
                "leave the others out");
  }
  const int64_t rows = std::max(info.inputs, info.classes);
  if (!info.causal || config.vocab < rows) {
    throw Error(ExitCode::usage, "--task",
                info.causal
                    ? "a task of at most the model's " + std::to_string(config.vocab) + " ids"
                    : "a task whose answers follow from what stands before them",
                info.causal ? "\"" + info.name + "\", of " + std::to_string(rows)
                            : "\"" + info.name + "\", whose positions read all others",
                "name the task that the model was trained on");
  }
}

nlohmann::ordered_json score_task(const TaskRequest& request, const ModelConfig& config,
                                  int64_t training_length, Backend& backend, Dtype activations,
                                  const Tensor& masters, const TaskProgress& progress) {
  check_task_request(request, config);
  Model(config, training_length, backend, activations)
      .check_length(request.task.info->most_inputs(request.lengths.back()));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const int64_t length : request.lengths) {
    rows.push_back(score_length(request, length, config, training_length, backend, activations,
                                masters, progress));
  }
  return rows;
}

}  // namespace bamtrain
