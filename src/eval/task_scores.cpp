#include "eval/task_scores.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/checked.h"
#include "core/error.h"
#include "data/sequences.h"
#include "eval/mean_json.h"
#include "eval/task_bleu.h"
#include "model/random_positions.h"
#include "tasks/sequence_sums.h"

namespace bamtrain {

namespace {

std::string name_of(TaskSet set) { return set == TaskSet::test ? "test" : "select"; }

/// Sequences per batch. `drawn`: positions are randomized; then a power of two that divides
/// kPublishedBatch.
int64_t examples_at_once(const TaskRequest& request, int64_t T, bool drawn) {
  const int64_t most = evaluation_batch(T);
  if (!drawn) return std::min(most, request.samples);
  int64_t B = kPublishedBatch;
  while (B > most) B /= 2;
  return B;
}

std::unique_ptr<Network> network_of(const ScoredModel& of) {
  return make_network(of.config, of.training_length, of.backend, of.activations);
}

}  // namespace

Task sequences_of(const TaskRequest& request, int64_t length, TaskSet set) {
  return {*request.task.info, request.task.options, LengthRange{length, length}, request.seed,
          name_of(set)};
}

void check_padded(const ModelConfig& config) {
  if (!counts_whole_sequence(config.attention.normalizer)) return;
  throw Error(ExitCode::config, "model.attention.normalizer.of",
              "\"row\" with k \"n/2\": padding would be counted", "\"sequence\"",
              "--set model.attention.normalizer.of=row");
}

void check_task_request(const TaskRequest& request, const ScoredModel& model) {
  const TaskInfo& info = *request.task.info;
  require(!request.lengths.empty() && request.samples >= 1, "lengths and samples");
  const int64_t shortest = request.lengths.front(), longest = request.lengths.back();
  if (shortest < info.least_length || longest > info.most_length) {
    throw Error(ExitCode::usage, "--lengths",
                "lengths from " + std::to_string(info.least_length) + " to " +
                    std::to_string(info.most_length) + ", of \"" + info.name + "\"",
                std::to_string(shortest < info.least_length ? shortest : longest), "leave it out");
  }
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    throw Error(ExitCode::usage, "--task", expected, "\"" + info.name + "\", " + found,
                "name the task that the model was trained on");
  };
  const ModelConfig& config = model.config;
  const bool reads_items = config.kind == ModelKind::max_retrieval;
  if (info.of_items != reads_items) {
    refuse(reads_items ? "max_retrieval, whose items this model reads" : "a task of tokens",
           reads_items ? "of tokens" : "of items, which models of model.kind max_retrieval read");
  }
  if (info.causal != config.attention.causal) {
    refuse(info.causal ? "a task for bidirectional attention, like this model's"
                       : "a task for causal attention, like this model's",
           info.causal ? "for causal attention: its inputs hold the answers of earlier positions"
                       : "for bidirectional attention");
  }
  if (config.vocab < info.inputs) {
    refuse("a task of at most the model's " + std::to_string(config.vocab) + " ids",
           "of " + std::to_string(info.inputs));
  }
  if (config.outputs() < info.classes) {
    refuse("a task of at most the model's " + std::to_string(config.outputs()) + " classes",
           "of " + std::to_string(info.classes));
  }
  check_padded(config);
  const std::unique_ptr<Network> network = network_of(model);
  network->check_length(info.most_inputs(longest));
  if (request.bleu) network->check_length(task_bleu_length(request, longest));
}

nlohmann::ordered_json score_task(const TaskRequest& request, int64_t length, TaskSet set,
                                  const ScoredModel& of, const TaskShare& share,
                                  const TaskProgress& progress) {
  const auto task = std::make_shared<const Task>(sequences_of(request, length, set));
  const std::unique_ptr<Network> model = network_of(of);
  const bool drawn = model->randomization().in_evaluation;
  const int64_t T = task->most_inputs(), B = examples_at_once(request, T, drawn);
  Arena arena;
  model->plan(arena, B, T, ModelUse::evaluation);
  arena.commit(of.backend.memory());
  model->set_master_weights(of.master_weights);
  model->refresh();
  Sequences sequences(nullptr, {{task, 1}}, T, B);
  const auto N = static_cast<size_t>(B * T);
  std::vector<int32_t> inputs(N), targets(N), answers(N), lengths(static_cast<size_t>(B));
  std::vector<double> losses(N);
  const Rng position_rng(request.seed, "positions." + name_of(set) + "." + std::to_string(length));
  std::vector<int32_t> positions(drawn ? static_cast<size_t>(model->draws()) * N : 0);
  // One slot per sequence, filled by one process and zero elsewhere: the sum over processes is
  // exact.
  std::vector<SequenceSums> slots(static_cast<size_t>(request.samples));
  const int64_t batches = ceil_div(request.samples, B);
  for (int64_t batch = share.rank; batch < batches; batch += share.processes) {
    const int64_t first = batch * B, rows = std::min(B, request.samples - first);
    std::vector<int64_t> numbers(static_cast<size_t>(rows));
    std::iota(numbers.begin(), numbers.end(), first);
    SequenceCounts counts;
    const int64_t t =
        sequences.read(numbers, batch, inputs.data(), targets.data(), &counts, lengths.data());
    if (drawn) {
      draw_batch(position_rng, model->randomization(), model->draws(),
                 {numbers, first / kPublishedBatch, counts.longest}, t, positions.data());
    }
    model->evaluate(inputs.data(), targets.data(), rows, t, std::nullopt, losses.data(), nullptr,
                    answers.data(), drawn ? positions.data() : nullptr, lengths.data());
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
  const TaskScores scores = task_scores(slots, task->info().terminator != kIgnoreIndex);
  nlohmann::ordered_json row;
  put_mean(&row, "loss", mean_loss(slots));
  put_mean(&row, "accuracy", scores.accuracy);
  put_mean(&row, "exact_match", scores.exact);
  row["targets"] = static_cast<int64_t>(counted);
  row["sequences"] = request.samples;
  return row;
}

int64_t task_scores_bytes(const TaskRequest& request, const ScoredModel& of) {
  const int64_t T = sequences_of(request, request.lengths.back(), TaskSet::test).most_inputs();
  const std::unique_ptr<Network> model = network_of(of);
  Arena arena;
  const bool drawn = model->randomization().in_evaluation;
  model->plan(arena, examples_at_once(request, T, drawn), T, ModelUse::evaluation);
  return arena.total_bytes() + request.samples * static_cast<int64_t>(sizeof(SequenceSums));
}

}  // namespace bamtrain
