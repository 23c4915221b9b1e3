// Steps whose results are read later, and what a validation pass returns.

#include "train/trainer.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "catch.h"
#include "dist/backends.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"
#include "train/support.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

struct Training {
  const RunConfig& config;
  std::unique_ptr<Backend> backend = make_cpu_backend();
  std::unique_ptr<Communicator> alone = make_single_communicator();
  Trainer trainer{config, *backend, 0, 1};

  explicit Training(const RunConfig& c) : config(c) {
    trainer.commit();
    trainer.initialize();
  }
  void start(int64_t step) { trainer.start_step(step, *alone); }
  std::vector<StepResult> finish() {
    const auto all = trainer.finish_steps(*alone);
    return {all.begin(), all.end()};
  }
  /// All parameters and the optimizer state.
  std::vector<float> state() {
    std::vector<float> all;
    for (const StateTensor of : kStateTensors) {
      const Tensor& t = trainer.state().place(of);
      all.insert(all.end(), t.ptr<float>(), t.ptr<float>() + t.size());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("results that are read late are those of steps read one by one") {
  const Workplace w;
  const RunConfig config = small_train_run(w);
  Training late(config), soon(config);
  for (int64_t step = 0; step < 5; ++step) late.start(step);
  CHECK(late.trainer.in_flight() == 5);
  const std::vector<StepResult> all = late.finish();
  REQUIRE(all.size() == 5);
  CHECK(late.trainer.in_flight() == 0);
  CHECK(late.finish().empty());
  for (int64_t step = 0; step < 5; ++step) {
    soon.start(step);
    const std::vector<StepResult> one = soon.finish();
    REQUIRE(one.size() == 1);
    const StepResult& r = all[static_cast<size_t>(step)];
    CHECK(r.step == step + 1);
    CHECK(r.step == one[0].step);
    CHECK(r.loss == one[0].loss);
    CHECK(r.norm == one[0].norm);
    CHECK(r.lr == one[0].lr);
    CHECK(r.loss > 0);
    CHECK(r.norm > 0);
  }
  CHECK(late.state() == soon.state());
}

TEST_CASE("the error of a validation loss is that over the sequences of the pass") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.data.val = w.path("val");
  const auto validate = [&](int64_t sequences) {
    config.eval.tokens = sequences * config.data.sequence_length;
    Training t(config);
    return t.trainer.validate(*t.alone).value().loss;
  };
  const ClusteredMean one = validate(1), two = validate(2), three = validate(3);
  CHECK(one.clusters == 1);
  CHECK(one.count == 64);
  CHECK_FALSE(one.error.has_value());
  // The losses of the sequences, which have equal lengths, from differences between the passes.
  const double a = one.mean, b = 2 * two.mean - a, c = 3 * three.mean - a - b, m = three.mean;
  CHECK(two.error.value() == Approx(std::fabs(a - b) / 2).epsilon(1e-9));
  const double squares = (a - m) * (a - m) + (b - m) * (b - m) + (c - m) * (c - m);
  CHECK(three.error.value() == Approx(std::sqrt(squares / 2 / 3)).epsilon(1e-9));
  CHECK(three.clusters == 3);
  CHECK(three.count == 192);
}

TEST_CASE("a validation pass tells the share of its windows that are done") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.data.val = w.path("val");
  config.train.micro_batch = 2;
  config.eval.tokens = 5 * config.data.sequence_length;
  Training t(config);
  std::vector<double> shares;
  t.trainer.validate(*t.alone, [&shares](double share) { shares.push_back(share); });
  CHECK(shares == std::vector<double>{1 / 3.0, 2 / 3.0, 1});
}

TEST_CASE("a validation loss is the mean over the windows of the pass, each alone") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.data.val = w.path("val");
  config.train.micro_batch = 4;
  const int64_t T = config.data.sequence_length;
  const ShardSet text = ShardSet::open(w.path("val"), config.model.vocab);
  const int64_t all = (text.tokens() - 1) / T;
  REQUIRE(all % config.train.micro_batch != 0);
  for (const int64_t windows : {int64_t{1}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{0}}) {
    INFO(windows << " windows, 0 for all " << all);
    config.eval.tokens = windows * T;
    Training t(config);
    const ClusteredMean loss = t.trainer.validate(*t.alone).value().loss;
    Model model(config.model, T, *t.backend, Dtype::f32);
    Arena arena;
    model.plan(arena, 1, T, ModelUse::evaluation);
    arena.commit();
    model.set_master_weights(t.trainer.state().place(StateTensor::master_weights));
    model.refresh();
    const int64_t expected = windows > 0 ? windows : all;
    double sum = 0;
    std::vector<double> losses(static_cast<size_t>(T));
    std::vector<int32_t> tokens(static_cast<size_t>(T + 1));
    for (int64_t i = 0; i < expected; ++i) {
      text.read_span({0, i * T, T + 1}, tokens.data());
      model.evaluate(tokens.data(), tokens.data() + 1, 1, T, config.data.document_start,
                     losses.data());
      sum += std::accumulate(losses.begin(), losses.end(), 0.0);
    }
    CHECK(loss.clusters == expected);
    CHECK(loss.count == expected * T);
    // fp32 products of a batch and of a single window add in different orders.
    CHECK(loss.mean == Approx(sum / static_cast<double>(expected * T)).epsilon(1e-6));
  }
}

TEST_CASE("a step's loss and gradient do not depend on how its windows are cut in micro-batches") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.model.attention.scale = ScaleChoice(*find_scale("none"));
  config.optimizer.lr_multipliers.clear();
  // Positions count within each window.
  config.model.attention.prior = PriorChoice(*find_prior("rope"));
  config.model.attention.prior.pattern[0].options.set("randomized", true);
  const auto first_steps = [&](int64_t micro_batch, int64_t lanes) {
    config.train.micro_batch = micro_batch;
    config.train.lanes = lanes;
    Training t(config);
    std::vector<StepResult> all;
    for (int64_t step = 0; step < 3; ++step) {
      t.start(step);
      all.push_back(t.finish()[0]);
    }
    return all;
  };
  const std::vector<StepResult> single = first_steps(1, 16);
  for (const auto& [micro_batch, lanes] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 4}, {2, 2}, {4, 4}, {8, 1}, {16, 1}}) {
    INFO("micro-batches of " << micro_batch << " in " << lanes << " lanes");
    const std::vector<StepResult> other = first_steps(micro_batch, lanes);
    for (size_t step = 0; step < 3; ++step) {
      CHECK(other[step].loss == Approx(single[step].loss).epsilon(1e-6));
      CHECK(other[step].norm == Approx(single[step].norm).epsilon(1e-4));
    }
  }
}

TEST_CASE("a pass says of attention what the rows of its first sequences are") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.data.val = w.path("val");
  config.eval.tokens = 3 * config.data.sequence_length;
  config.model.attention.document_mask = false;
  const auto look = [&](int64_t windows) {
    config.eval.attention = windows;
    Training t(config);
    return t.trainer.validate(*t.alone).value().attention;
  };
  CHECK_FALSE(look(0).has_value());
  const AttentionMeans one = look(1).value(), two = look(2).value(), three = look(3).value();
  CHECK(one.windows == 1);
  CHECK(three.windows == 3);
  CHECK(look(INT32_MAX).value().windows == 3);
  CHECK(look(INT32_MAX).value().entropy == three.entropy);
  for (const AttentionMeans& means : {one, two, three}) {
    REQUIRE(means.entropy.size() == 2);
    for (size_t l = 0; l < 2; ++l) {
      CHECK(means.nonzero_keys[l] == std::vector<double>(4, 32.5));  // row i of 64 sees i + 1 keys
      REQUIRE(means.entropy[l].size() == 4);
      for (const double H : means.entropy[l]) CHECK((H > 0 && H < std::log(32.5)));
      CHECK(means.nonzero_blocks[l] == std::vector<double>(4, 1.0));
    }
  }
  // Two sequences in one batch, then one in the next.
  CHECK(one.entropy[1] != two.entropy[1]);
  CHECK(two.entropy[1] != three.entropy[1]);
}

TEST_CASE("looking at attention leaves every bit of the training and of the loss") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.data.val = w.path("val");
  std::vector<float> states[2];
  std::vector<double> losses[2];
  for (const int64_t windows : {0, 8}) {
    config.eval.attention = windows;
    Training t(config);
    for (int64_t step = 0; step < 3; ++step) {
      t.start(step);
      t.finish();
      losses[windows / 8].push_back(t.trainer.validate(*t.alone).value().loss.mean);
    }
    states[windows / 8] = t.state();
  }
  CHECK(states[0] == states[1]);
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("a step moves parameters by its own learning rate") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.optimizer.weight_decay = 0;
  config.optimizer.lr_multipliers.clear();
  config.schedule.warmup_steps = 4;
  Training t(config);
  const std::vector<float> before = t.state();
  t.start(0);
  CHECK(t.finish()[0].lr == config.optimizer.lr / 4);
  // Adam's first step: the ratio of its moments is 1, up to eps relative to the gradient.
  float furthest = 0;
  const std::vector<float> after = t.state();
  for (int64_t i = 0; i < t.trainer.state().place(StateTensor::master_weights).size(); ++i) {
    const auto n = static_cast<size_t>(i);
    furthest = std::max(furthest, std::abs(after[n] - before[n]));
  }
  CHECK(furthest == Approx(config.optimizer.lr / 4).epsilon(1e-3));
}

TEST_CASE("neither parameters nor moments that are not finite are saved") {
  const Workplace w;
  const RunConfig config = small_train_run(w);
  Training t(config);
  t.start(0);
  t.finish();
  CHECK(t.trainer.state().is_finite());
  for (const StateTensor of : kStateTensors) {
    const Tensor& state = t.trainer.state().place(of);
    for (const float bad : {NAN, INFINITY}) {
      float& last = state.ptr<float>()[state.size() - 1];
      const float good = std::exchange(last, bad);
      CHECK_FALSE(t.trainer.state().is_finite());
      last = good;
    }
  }
  CHECK(t.trainer.state().is_finite());
}

TEST_CASE("no step changes anything from the first whose gradients are not finite on") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.optimizer.lr = 1e30;
  config.optimizer.clip = 0;
  // The number of the first bad step, and the state after the steps before it.
  Training soon(config);
  int64_t bad = 0;
  std::vector<float> before;
  try {
    for (; bad < 20; ++bad) {
      before = soon.state();
      soon.start(bad);
      soon.finish();
    }
    FAIL("no step failed");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::nonfinite);
  }
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  };
  CHECK(same(soon.state(), before));
  Training late(config);
  for (int64_t step = 0; step < bad + 4; ++step) late.start(step);
  try {
    late.finish();
    FAIL("no step failed");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("step " + std::to_string(bad + 1) + ":") != std::string::npos);
  }
  CHECK(same(late.state(), before));
}
