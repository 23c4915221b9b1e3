#include "eval/task_scores.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/checked.h"
#include "core/error.h"
#include "data/sequences.h"
#include "tasks/sequence_sums.h"

namespace bamtrain {

namespace {

Task sequences_of(const TaskRequest& request, int64_t length, TaskSet set) {
  return {*request.task.info, request.task.options, LengthRange{length, length}, request.seed,
          set == TaskSet::test ? "test" : "select"};
}

int64_t batch_of(const TaskRequest& request, int64_t T) {
  return std::min(evaluation_batch(T), request.samples);
}

void write(nlohmann::ordered_json& row, const std::string& name, const ClusteredMean& mean) {
  row[name] = mean.mean;
  row[name + "_error"] = nullptr;
  if (mean.error) row[name + "_error"] = *mean.error;
}

}  // namespace

void check_task_request(const TaskRequest& request, const ScoredModel& model) {
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
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    throw Error(ExitCode::usage, "--task", expected, "\"" + info.name + "\", " + found,
                "name the task that the model was trained on");
  };
  if (!info.causal) {
    refuse("a task whose answers follow from what stands before them",
           "whose positions read all others");
  }
  const ModelConfig& config = model.config;
  if (config.vocab < info.inputs) {
    refuse("a task of at most the model's " + std::to_string(config.vocab) + " ids",
           "of " + std::to_string(info.inputs));
  }
  if (config.outputs() < info.classes) {
    refuse("a task of at most the model's " + std::to_string(config.outputs()) + " classes",
           "of " + std::to_string(info.classes));
  }
  Model(model.config, model.training_length, model.backend, model.activations)
      .check_length(info.most_inputs(longest));
}

nlohmann::ordered_json score_task(const TaskRequest& request, int64_t length, TaskSet set,
                                  const ScoredModel& of, const TaskShare& share,
                                  const TaskProgress& progress) {
  const auto task = std::make_shared<const Task>(sequences_of(request, length, set));
  const int64_t T = task->most_inputs(), B = batch_of(request, T);
  Model model(of.config, of.training_length, of.backend, of.activations);
  Arena arena;
  model.plan(arena, B, T, ModelUse::evaluation);
  arena.commit(of.backend.memory());
  model.set_masters(of.masters);
  model.refresh();
  Sequences sequences(nullptr, {{task, 1}}, T, B);
  const auto N = static_cast<size_t>(B * T);
  std::vector<int32_t> inputs(N), targets(N), answers(N);
  std::vector<double> losses(N);
  // Slots per sequence, filled by one process and zero elsewhere: the sum over processes is exact.
  std::vector<SequenceSums> slots(static_cast<size_t>(request.samples));
  const int64_t batches = ceil_div(request.samples, B);
  for (int64_t batch = share.rank; batch < batches; batch += share.processes) {
    const int64_t first = batch * B, rows = std::min(B, request.samples - first);
    std::vector<int64_t> numbers(static_cast<size_t>(rows));
    std::iota(numbers.begin(), numbers.end(), first);
    SequenceCounts counts;
    const int64_t t = sequences.read(numbers, batch, inputs.data(), targets.data(), &counts);
    model.evaluate(inputs.data(), targets.data(), rows, t, std::nullopt, losses.data(), nullptr,
                   answers.data());
    for (int64_t b = 0; b < rows; ++b) {
      const auto row = [&]<class X>(const std::vector<X>& all) {
        return std::span<const X>(all).subspan(static_cast<size_t>(b * t), static_cast<size_t>(t));
      };
      slots[static_cast<size_t>(first + b)] =
          sequence_sums(row(losses), row(targets), row(answers), task->info().terminator);
    }
    progress(static_cast<double>(first + rows) / static_cast<double>(request.samples));
  }
  share.sum(&slots[0].loss, request.samples * SequenceSums::kNumbers);
  double counted = 0;
  for (const SequenceSums& s : slots) counted += s.targets;
  const TaskScores scores = task_scores(slots);
  nlohmann::ordered_json row;
  write(row, "loss", mean_loss(slots));
  write(row, "accuracy", scores.accuracy);
  write(row, "exact_match", scores.exact);
  row["targets"] = static_cast<int64_t>(counted);
  row["sequences"] = request.samples;
  return row;
}

int64_t task_scores_bytes(const TaskRequest& request, const ScoredModel& of) {
  const int64_t T = sequences_of(request, request.lengths.back(), TaskSet::test).most_inputs();
  Model model(of.config, of.training_length, of.backend, of.activations);
  Arena arena;
  model.plan(arena, batch_of(request, T), T, ModelUse::evaluation);
  return arena.total_bytes();
}

}  // namespace bamtrain
