// Scores of a task against a model that reads each sequence token by token.

#include "eval/task_scores.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "model/growing_text.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "tasks/registry.h"

using namespace bamtrain;

namespace {

constexpr int64_t kTrained = 20;

struct Fixture {
  ModelConfig config;
  std::unique_ptr<Backend> backend = make_reference_backend();
  std::unique_ptr<ParameterLayout> layout;
  Arena arena;
  Tensor masters;

  explicit Fixture(uint64_t seed) {
    config.vocab = 12;
    config.width = 8;
    config.layers = 1;
    config.heads = config.kv_heads = 2;
    config.mlp.hidden = 8;
    config.init = InitKind::torch;
    config.attention.prior = PriorChoice(*find_prior("alibi"));
    config.attention.scale = ScaleChoice(*find_scale("none"));
    layout = std::make_unique<ParameterLayout>(config, kTrained);
    arena.add("masters", &masters, Dtype::f64, {layout->elements()});
    arena.commit();
    for (const Parameter& p : layout->all()) {
      initialize(p, config, kTrained, seed, masters.slice(0, p.offset, p.size));
    }
  }

  nlohmann::ordered_json scores(const TaskRequest& request) {
    return score_task(request, config, kTrained, *backend, Dtype::f64, masters,
                      [](int64_t, double) {});
  }
};

TaskRequest request_of(const std::string& name, std::vector<int64_t> lengths, int64_t samples) {
  const TaskInfo& info = *find_task(name);
  return {{&info, default_options(info.options), info.lengths}, std::move(lengths), samples, 3};
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

/// Of greedy decoding, and of reading the targets.
struct Truth {
  int64_t exact = 0, right = 0, targets = 0;
  double loss = 0;
};

Truth truth_of(Fixture& f, const TaskRequest& request, int64_t length) {
  const Task task(*request.task.info, request.task.options, {length, length}, request.seed, "test");
  GrowingText text(f.config, kTrained, *f.backend, Dtype::f64, std::nullopt,
                   task.most_inputs() + 1);
  text.commit(f.masters);
  Truth out;
  for (int64_t n = 0; n < request.samples; ++n) {
    Example e;
    task.draw(n, length, &e);
    const auto begin = static_cast<size_t>(
        std::find_if(e.targets.begin(), e.targets.end(), [](int32_t t) { return t != kNoTarget; }) -
        e.targets.begin());
    const std::span<const int32_t> prompt(e.inputs.data(), begin + 1);
    // What the model writes behind the prompt.
    text.clear();
    bool exact = true;
    int32_t written = likeliest(text.append(prompt));
    for (size_t i = begin; i < e.targets.size(); ++i) {
      exact = exact && written == e.targets[i];
      if (i + 1 < e.targets.size()) written = likeliest(text.append({&written, 1}));
    }
    out.exact += exact;
    // What it gives behind the right ones.
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
  // A model of random weights writes a bit and the end in one of 70 or so.
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Fixture f(seed);
    const TaskRequest request = request_of("flip_flop", {6, 9}, 6);
    const nlohmann::ordered_json rows = f.scores(request);
    REQUIRE(rows.size() == 2);
    for (size_t row = 0; row < 2; ++row) {
      INFO("seed " << seed << ", length " << request.lengths[row]);
      const Truth truth = truth_of(f, request, request.lengths[row]);
      CHECK(rows[row]["length"] == request.lengths[row]);
      CHECK(rows[row]["sequences"] == 6);
      CHECK(rows[row]["targets"] == truth.targets);
      CHECK(rows[row]["exact_match"].get<double>() * 6 == Approx(truth.exact));
      CHECK(rows[row]["accuracy"].get<double>() * static_cast<double>(truth.targets) ==
            Approx(truth.right));
      CHECK(rows[row]["loss"].get<double>() * static_cast<double>(truth.targets) ==
            Approx(truth.loss).epsilon(1e-12));
      exact += truth.exact;
      differ += truth.right != 2 * truth.exact;
    }
  }
  CHECK(exact > 0);   // some were right,
  CHECK(differ > 0);  // and some in part
}

TEST_CASE("what cannot be scored is refused before any time is spent") {
  Fixture f(1);
  const auto refused = [&](const TaskRequest& request) {
    try {
      check_task_request(request, f.config);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused(request_of("flip_flop", {6}, 1)).empty());
  CHECK(refused(request_of("flip_flop", {3, 6}, 1)).find("from 4 to ") != std::string::npos);
  CHECK(refused(request_of("copy", {6}, 1)).find("the model's 12 ids") != std::string::npos);
  CHECK(refused(request_of("even_pairs", {6}, 1)).find("read all others") != std::string::npos);
}
