// Task scores, compared with a model that reads each sequence token by token.

#include "eval/task_scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/element.h"
#include "model/incremental_decoder.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "tasks/registry.h"

using namespace bamtrain;

namespace {

struct TaskModel {
  static constexpr int64_t kTrained = 20;

  ModelConfig config;
  std::unique_ptr<Backend> backend = make_reference_backend();
  std::unique_ptr<ParameterLayout> layout;
  Arena arena;
  Tensor master_weights;

  explicit TaskModel(uint64_t seed) {
    config.vocab = 12;
    config.width = 8;
    config.layers = 1;
    config.heads = config.kv_heads = 2;
    config.mlp.hidden = 8;
    config.init = InitKind::torch;
    config.attention.prior = PriorChoice(*find_prior("alibi"));
    config.attention.scale = ScaleChoice(*find_scale("none"));
    layout = std::make_unique<ParameterLayout>(config, kTrained);
    arena.add("masters", &master_weights, Dtype::f64, {layout->elements()});
    arena.commit();
    for (const Parameter& p : layout->all()) {
      initialize(p, config, kTrained, seed, master_weights.slice(0, p.offset, p.size));
    }
  }

  ScoredModel model() { return {config, kTrained, *backend, Dtype::f64, master_weights}; }

  nlohmann::ordered_json scores(const TaskRequest& request, int64_t length,
                                TaskSet set = TaskSet::test, const TaskShare& share = {}) {
    return score_task(request, length, set, model(), share, [](double) {});
  }
};

TaskRequest request_of(const std::string& name, std::vector<int64_t> lengths, int64_t samples) {
  const TaskInfo& info = *find_task(name);
  return {
      name, {&info, default_options(info.options), info.lengths}, std::move(lengths), samples, 3};
}

int32_t likeliest(const Tensor& logits) {
  int32_t best = 0;
  for (int32_t v = 1; v < logits.size(); ++v) {
    if (get(logits, v) > get(logits, best)) best = v;
  }
  return best;
}

double loss_of(const Tensor& logits, int32_t target) {
  double sum = 0;
  for (int64_t v = 0; v < logits.size(); ++v) sum += std::exp(get(logits, v));
  return std::log(sum) - get(logits, target);
}

/// Results of greedy decoding, and of reading the targets.
struct Truth {
  int64_t exact = 0, right = 0, targets = 0;
  double loss = 0;
};

Truth truth_of(TaskModel& f, const TaskRequest& request, int64_t length) {
  const Task task(*request.task.info, request.task.options, {length, length}, request.seed, "test");
  IncrementalDecoder text(f.config, TaskModel::kTrained, *f.backend, Dtype::f64, std::nullopt,
                          task.most_inputs() + 1);
  text.commit(f.master_weights);
  Truth out;
  for (int64_t n = 0; n < request.samples; ++n) {
    Example e;
    task.draw(n, length, &e);
    const auto begin =
        static_cast<size_t>(std::find_if(e.targets.begin(), e.targets.end(),
                                         [](int32_t t) { return t != kIgnoreIndex; }) -
                            e.targets.begin());
    const std::span<const int32_t> prompt(e.inputs.data(), begin + 1);
    // The model's own continuation of the prompt.
    text.clear();
    bool exact = true;
    int32_t written = likeliest(text.append(prompt));
    for (size_t i = begin; i < e.targets.size(); ++i) {
      exact = exact && written == e.targets[i];
      if (i + 1 < e.targets.size()) written = likeliest(text.append({&written, 1}));
    }
    out.exact += exact;
    // Its outputs after the correct tokens.
    text.clear();
    for (size_t i = begin; i < e.targets.size(); ++i) {
      const Tensor logits = i == begin ? text.append(prompt) : text.append({&e.inputs[i], 1});
      out.right += likeliest(logits) == e.targets[i];
      out.loss += loss_of(logits, e.targets[i]);
      ++out.targets;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("exact match by one pass is that of greedy decoding, accuracy and loss of reading on") {
  int64_t exact = 0, differ = 0;
  // About one in 70 models with random weights writes a bit and then the end.
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TaskModel f(seed);
    const TaskRequest request = request_of("flip_flop", {6, 9}, 6);
    for (const int64_t length : request.lengths) {
      INFO("seed " << seed << ", length " << length);
      const nlohmann::ordered_json row = f.scores(request, length);
      const Truth truth = truth_of(f, request, length);
      CHECK(row["sequences"] == 6);
      CHECK(row["targets"] == truth.targets);
      CHECK(row["exact_match"].get<double>() * 6 == Approx(truth.exact));
      CHECK(row["accuracy"].get<double>() * static_cast<double>(truth.targets) ==
            Approx(truth.right));
      CHECK(row["loss"].get<double>() * static_cast<double>(truth.targets) ==
            Approx(truth.loss).epsilon(1e-12));
      exact += truth.exact;
      differ += truth.right != 2 * truth.exact;
    }
  }
  CHECK(exact > 0);   // some were right,
  CHECK(differ > 0);  // and some partly right
}

TEST_CASE("a checkpoint is chosen on other sequences than those that its results are of") {
  TaskModel f(1);
  const TaskRequest request = request_of("flip_flop", {9}, 50);
  CHECK(f.scores(request, 9, TaskSet::select) != f.scores(request, 9));
  CHECK(f.scores(request, 9, TaskSet::select) == f.scores(request, 9, TaskSet::select));
}

TEST_CASE("what several processes score adds up to the bits of one") {
  TaskModel f(1);
  // Three batches, the last with 7 sequences.
  const int64_t batch = evaluation_batch(find_task("flip_flop")->most_inputs(9));
  const TaskRequest request = request_of("flip_flop", {9}, 2 * batch + 7);
  const nlohmann::ordered_json one = f.scores(request, 9);
  for (const int processes : {2, 3, 5}) {  // of 5, two have no work
    INFO(processes);
    std::vector<double> sums(static_cast<size_t>(4 * request.samples));
    nlohmann::ordered_json all;
    // Each rank adds its values to the sum so far, so the last rank has the total.
    for (int rank = 0; rank < processes; ++rank) {
      all = f.scores(request, 9, TaskSet::test,
                     {rank, processes, [&sums](double* values, int64_t count) {
                        REQUIRE(count == std::ssize(sums));
                        for (size_t i = 0; i < sums.size(); ++i) values[i] = sums[i] += values[i];
                      }});
    }
    CHECK(all == one);
  }
}

TEST_CASE("the memory that a task takes beside the weights is that of its longest sequences") {
  TaskModel f(1);
  const auto bytes = [&](std::vector<int64_t> lengths) {
    return task_scores_bytes(request_of("flip_flop", std::move(lengths), 20), f.model());
  };
  CHECK(bytes({6}) > 0);
  CHECK(bytes({6, 200}) == bytes({200}));
  CHECK(bytes({200}) > bytes({6}));
}

TEST_CASE("what cannot be scored is refused before any time is spent") {
  TaskModel f(1);
  const auto refused = [&](const TaskRequest& request) {
    try {
      check_task_request(request, f.model());
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused(request_of("flip_flop", {6}, 1)).empty());
  CHECK(refused(request_of("flip_flop", {3, 6}, 1)).find("from 4 to ") != std::string::npos);
  CHECK(refused(request_of("copy", {6}, 1)).find("the model's 12 ids") != std::string::npos);
  CHECK(refused(request_of("even_pairs", {6}, 1)).find("for bidirectional attention") !=
        std::string::npos);
  const std::string items = refused(request_of("max_retrieval", {6}, 1));
  CHECK(items.find("of items, which models of model.kind max_retrieval read") != std::string::npos);
}
