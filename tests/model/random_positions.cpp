#include "model/random_positions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "build.h"
#include "catch.h"
#include "core/error.h"

namespace bamtrain::testing {
namespace {

std::vector<int32_t> draw(const Rng& rng, int64_t sequence, int64_t range, int64_t T) {
  std::vector<int32_t> positions(static_cast<size_t>(T), -1);
  draw_positions(rng, sequence, range, T, positions.data());
  return positions;
}

TEST_CASE("positions ascend from below the range, none of them twice") {
  const Rng rng(1, "positions");
  for (const auto& [range, T] :
       {std::pair<int64_t, int64_t>{1, 1}, {8, 8}, {9, 8}, {100, 1}, {2048, 512}}) {
    for (int64_t sequence = 0; sequence < 50; ++sequence) {
      const std::vector<int32_t> p = draw(rng, sequence, range, T);
      CHECK(p.front() >= 0);
      CHECK(p.back() < range);
      CHECK(std::is_sorted(p.begin(), p.end(), std::less_equal<>()));
    }
  }
}

TEST_CASE("positions are a function of seed and sequence alone") {
  const Rng rng(1, "positions"), same(1, "positions"), other(2, "positions");
  const std::vector<int32_t> first = draw(rng, 7, 400, 100);
  draw(rng, 8, 400, 100);
  CHECK(draw(rng, 7, 400, 100) == first);
  CHECK(draw(same, 7, 400, 100) == first);
  CHECK(draw(rng, 8, 400, 100) != first);
  CHECK(draw(other, 7, 400, 100) != first);
  // The number of a window in a long run: beyond 2^32 tokens.
  CHECK(draw(rng, (int64_t{1} << 40) + 7, 400, 100) != first);
}

TEST_CASE("every subset is as likely as any other") {
  const Rng rng(1, "positions");
  constexpr int64_t kDraws = 20'000, kSubsets = 10;  // 2 of 5
  std::map<std::vector<int32_t>, int64_t> counts;
  for (int64_t n = 0; n < kDraws; ++n) ++counts[draw(rng, n, 5, 2)];
  CHECK(counts.size() == kSubsets);
  double statistic = 0;
  for (const auto& [subset, count] : counts) {
    const double expected = 1.0 * kDraws / kSubsets, error = static_cast<double>(count) - expected;
    statistic += error * error / expected;
  }
  // Chi squared with 9 degrees of freedom: mean 9, variance 18. Allows five standard deviations.
  CHECK(statistic < 9 + 5 * std::sqrt(18.0));
}

TEST_CASE("the k-th position lies where order statistics of a subset lie") {
  const Rng rng(1, "positions");
  constexpr int64_t kDraws = 4000, L = 40, T = 10;
  std::vector<double> mean(T);
  for (int64_t n = 0; n < kDraws; ++n) {
    const std::vector<int32_t> p = draw(rng, n, L, T);
    for (size_t k = 0; k < T; ++k) mean[k] += static_cast<double>(p[k]) / kDraws;
  }
  for (int64_t k = 1; k <= T; ++k) {
    const double expected = static_cast<double>(k * (L + 1)) / (T + 1) - 1;
    const double variance = static_cast<double>(k * (T + 1 - k) * (L + 1) * (L - T)) /
                            static_cast<double>((T + 1) * (T + 1) * (T + 2));
    CHECK(std::abs(mean[static_cast<size_t>(k - 1)] - expected) < 5 * std::sqrt(variance / kDraws));
  }
}

TEST_CASE("sequences near each other draw positions that know nothing of each other") {
  const Rng rng(1, "positions");
  constexpr int64_t kPairs = 2000, L = 40, T = 15, kFurthest = 30;
  // For two independent subsets, counts positions of one that are `shift` after a position of the
  // other. N places are possible, each with probability f^2, and two of them with g^2.
  const double f = 1.0 * T / L, g = f * (T - 1) / (L - 1);
  for (int64_t lag = 1; lag <= 3; ++lag) {
    std::vector<double> mean(2 * kFurthest + 1);
    for (int64_t n = 0; n < kPairs; ++n) {
      const int64_t sequence = n * (lag + 1);  // each sequence is in one pair only
      const std::vector<int32_t> a = draw(rng, sequence, L, T), b = draw(rng, sequence + lag, L, T);
      for (const int32_t p : a) {
        for (const int32_t q : b) {
          if (std::abs(p - q) <= kFurthest) {
            mean[static_cast<size_t>(p - q + kFurthest)] += 1.0 / kPairs;
          }
        }
      }
    }
    for (int64_t shift = -kFurthest; shift <= kFurthest; ++shift) {
      INFO("sequences " << lag << " apart, positions " << shift);
      const auto N = static_cast<double>(L - std::abs(shift));
      const double expected = N * f * f;
      const double variance = expected + N * (N - 1) * g * g - expected * expected;
      CHECK(std::abs(mean[static_cast<size_t>(shift + kFurthest)] - expected) <
            5 * std::sqrt(variance / kPairs));
    }
  }
}

std::vector<int32_t> draws_of(const Rng& rng, const Randomization& r, int64_t draws,
                              const std::vector<int64_t>& sequences, int64_t step, int64_t longest,
                              int64_t T) {
  std::vector<int32_t> positions(static_cast<size_t>(draws * std::ssize(sequences) * T), -1);
  draw_batch(rng, r, draws, {sequences, step, longest}, T, positions.data());
  return positions;
}

TEST_CASE("a step's draws are the same for its sequences, others in every layer and step") {
  const Rng rng(1, "positions");
  for (const Randomized what : {Randomized::positions, Randomized::distances}) {
    const Randomization r = {90, what, true, false};
    constexpr int64_t kDraws = 3, kRows = 4, kT = 32, kLongest = 21;
    const std::vector<int32_t> all = draws_of(rng, r, kDraws, {5, 6, 7, 9}, 2, kLongest, kT);
    const auto row = [&](int64_t draw, int64_t b) {
      const auto begin = all.begin() + (draw * kRows + b) * kT;
      return std::vector<int32_t>(begin, begin + kT);
    };
    for (int64_t d = 0; d < kDraws; ++d) {
      const std::vector<int32_t> first = row(d, 0);
      for (int64_t b = 1; b < kRows; ++b) CHECK(row(d, b) == first);
      CHECK(std::is_sorted(first.begin(), first.begin() + kLongest, std::less_equal<>()));
      // Padding repeats the last draw: that is inside every table, and does not move other draws.
      CHECK(std::count(first.begin(), first.end(), first[kLongest - 1]) == kT - kLongest + 1);
      CHECK((first[0] == 0 || what == Randomized::positions));
      CHECK(first[1] > 0);
      CHECK(first.back() < 90);
      for (int64_t other = 0; other < d; ++other) CHECK(row(other, 0) != first);
      // The draws of a batch with another shape in this step, on any process.
      const std::vector<int32_t> alone = draws_of(rng, r, kDraws, {1}, 2, kLongest, kLongest);
      CHECK(std::equal(first.begin(), first.begin() + kLongest, alone.begin() + d * kLongest));
    }
    const std::vector<int32_t> next = draws_of(rng, r, kDraws, {5, 6, 7, 9}, 3, kLongest, kT);
    for (int64_t d = 0; d < kDraws; ++d) {
      const auto begin = next.begin() + d * kRows * kT;
      for (int64_t e = 0; e < kDraws; ++e)
        CHECK(std::vector<int32_t>(begin, begin + kT) != row(e, 0));
    }
    CHECK(draws_of(Rng(2, "positions"), r, kDraws, {5, 6, 7, 9}, 2, kLongest, kT) != all);
  }
  // As long as the range: no choice is left.
  const Randomization all = {4, Randomized::distances, true, false};
  CHECK(draws_of(rng, all, 1, {0}, 8, 4, 4) == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(draws_of(rng, all, 1, {0}, 8, 1, 3) == std::vector<int32_t>{0, 0, 0});
}

TEST_CASE("every set of distances is as likely as any other, in every layer") {
  const Rng rng(1, "positions");
  const Randomization r = {6, Randomized::distances, true, false};
  constexpr int64_t kSteps = 10'000, kSubsets = 10;  // 0, and 2 of 1 to 5
  for (int64_t layer = 0; layer < 2; ++layer) {
    std::map<std::vector<int32_t>, int64_t> counts;
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<int32_t> both = draws_of(rng, r, 2, {0}, step, 3, 3);
      ++counts[{both.begin() + layer * 3, both.begin() + layer * 3 + 3}];
    }
    CHECK(counts.size() == kSubsets);
    double statistic = 0;
    for (const auto& [subset, count] : counts) {
      CHECK(subset[0] == 0);
      const double expected = 1.0 * kSteps / kSubsets,
                   error = static_cast<double>(count) - expected;
      statistic += error * error / expected;
    }
    CHECK(statistic < 9 + 5 * std::sqrt(18.0));  // as above
  }
}

TEST_CASE("sequences that draw for themselves are drawn as one by one") {
  const Rng rng(1, "positions");
  const Randomization r = {50, Randomized::positions, false, false};
  std::vector<int32_t> both = draw(rng, 11, 50, 9), second = draw(rng, 40, 50, 9);
  both.insert(both.end(), second.begin(), second.end());
  CHECK(draws_of(rng, r, 1, {11, 40}, 3, 7, 9) == both);
}

/// The priors with random positions, their options, and the number of draws of their models.
struct RandomPrior {
  const char* name;
  std::map<std::string, OptionValue> options;
  int64_t draws;  // 0: one per layer
};

std::vector<RandomPrior> random_priors() {
  const OptionValue step = std::string("step");
  return {{"rope", {{"theta", 50.0}}, 1},
          {"rope", {{"theta", 50.0}, {"randomized_draw", step}}, 0},
          {"learned", {}, 1},
          {"learned", {{"randomized_draw", step}}, 1},
          {"sinusoidal", {}, 1},
          {"sinusoidal", {{"randomized_draw", step}}, 1},
          {"alibi", {}, 0},
          {"transformer_xl", {}, 0}};
}

ModelConfig random_config(const RandomPrior& p, bool in_evaluation = false) {
  ModelConfig c = small_config();
  std::map<std::string, OptionValue> options = p.options;
  options["randomized"] = true;
  if (in_evaluation) options["eval_positions"] = std::string("drawn");
  c.attention.prior = prior(p.name, options);
  return c;
}

/// The same without randomization; bitwise identical if positions count tokens.
ModelConfig counted_config(const RandomPrior& p, int64_t rows) {
  ModelConfig c = small_config();
  std::map<std::string, OptionValue> options = p.options;
  options.erase("randomized_draw");
  // The same table, since names and indices of its elements determine the values.
  if (p.name == std::string("learned")) options["positions"] = static_cast<double>(rows);
  c.attention.prior = prior(p.name, options);
  return c;
}

TEST_CASE("draws that count are what a model without random positions has, to the bit") {
  const Threads one(1);  // many tiny passes
  for (const RandomPrior& p : random_priors()) {
    for (Dtype t : with_products({Dtype::f64, Dtype::f32, Dtype::bf16})) {
      INFO(p.name << " in " << name_of(t));
      const ModelConfig c = random_config(p, true);
      Batch batch = random_batch(2, 19, c.vocab);
      const Batch plain = batch;
      Run random(c, t, 2, 19), counted(counted_config(p, 4 * 19), t, 2, 19);
      const int64_t draws = random.model().draws();
      CHECK(draws == (p.draws > 0 ? p.draws : c.layers));
      for (int64_t i = 0; i < draws * 38; ++i) {
        batch.positions.push_back(static_cast<int32_t>(i % 19));
      }
      CHECK(random.differentiate(batch) == counted.differentiate(plain));
      check_equal(read(random.gradients(), Role::parameter).x,
                  read(counted.gradients(), Role::parameter).x);
      CHECK(random.loss(batch) == counted.loss(plain));
      // Every layer uses its own draw, and with draws per step the first row's.
      for (int64_t d = 0; d < draws; ++d) {
        Batch other = batch;
        for (int64_t b = 0; b < 2; ++b) {
          for (size_t i = 12; i < 19; ++i) {
            other.positions[static_cast<size_t>((d * 2 + b) * 19) + i] += 30;
          }
        }
        CHECK(random.differentiate(other) != counted.differentiate(plain));
        CHECK(random.loss(other) != counted.loss(plain));
      }
      // No state of earlier draws remains.
      CHECK(random.differentiate(batch) == counted.differentiate(plain));
    }
  }
}

TEST_CASE("gradients at random positions agree with differences") {
  const Threads one(1);
  const Rng rng(4, "positions");
  for (const RandomPrior& p : random_priors()) {
    for (const bool dape : {false, true}) {
      ModelConfig c = random_config(p, true);
      if (dape && p.name != std::string("alibi")) continue;
      if (dape) c.attention.prior = mixed("dape", c.attention.prior.of(0), {{"hidden", 4.0}});
      INFO(describe(c));
      Batch batch = random_batch(2, 19, c.vocab);
      Run run(c, Dtype::f64, 2, 19);
      batch.positions.resize(static_cast<size_t>(run.model().draws() * 38));
      const std::vector<int64_t> numbers = {3, 4};
      draw_batch(rng, run.model().randomization(), run.model().draws(), {numbers, 2, 19}, 19,
                 batch.positions.data());
      const double loss = run.differentiate(batch);
      CHECK(run.loss(batch) == Approx(loss).epsilon(1e-13));
      for (const Parameter& q : run.parameters()) {
        const std::vector<double> g = run.gradient(q.name);
        const auto i =
            std::max_element(g.begin(), g.end(),
                             [](double a, double b) { return std::abs(a) < std::abs(b); }) -
            g.begin();
        // As in tests/model/differences.cpp.
        const double h = dape ? 1e-6 : 1e-5;
        run.move(q, i, h);
        const double above = run.loss(batch);
        run.move(q, i, -2 * h);
        const double below = run.loss(batch);
        run.move(q, i, h);
        INFO(q.name << "[" << i << "]");
        const double largest = std::abs(g[static_cast<size_t>(i)]);
        CHECK(std::abs((above - below) / (2 * h) - g[static_cast<size_t>(i)]) <=
              1e-6 * largest + 2e-9);
      }
    }
  }
}

TEST_CASE("distances that evaluation draws reach no further than those of training") {
  const Threads one(1);
  for (const char* name : {"alibi", "transformer_xl"}) {
    const RandomPrior p = {name, {}, 0};
    CHECK_NOTHROW(Run(random_config(p), Dtype::f32, 1, 41, ModelUse::evaluation, 10));
    CHECK_NOTHROW(Run(random_config(p, true), Dtype::f32, 1, 40, ModelUse::evaluation, 10));
    std::string message;
    try {
      Run(random_config(p, true), Dtype::f32, 1, 41, ModelUse::evaluation, 10);
    } catch (const Error& e) {
      message = e.what();
    }
    CHECK(message.find("randomized_length: expected at most 40 distances") != std::string::npos);
  }
}

ModelConfig randomized_config() {
  ModelConfig c = small_config();
  c.attention.document_mask = true;
  c.attention.prior = prior("rope", {{"theta", 50.0}, {"randomized", true}});
  return c;
}

// golden.cpp tests models at random positions.
TEST_CASE("positions that count tokens are those of a model without random ones, to the bit") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : with_products({Dtype::f64, Dtype::f32, Dtype::bf16})) {
    ModelConfig c = randomized_config();
    Batch batch = random_batch(2, 19, c.vocab);
    const Batch plain = batch;
    for (int64_t i = 0, start = 0; i < 38; ++i) {
      if (i % 19 == 0 || batch.tokens[static_cast<size_t>(i)] == 0) start = i;
      batch.positions.push_back(static_cast<int32_t>(i - start));
    }
    Run randomized(c, t, 2, 19);
    c.attention.prior = prior("rope", {{"theta", 50.0}});
    Run rope(c, t, 2, 19);
    CHECK(randomized.differentiate(batch) == rope.differentiate(plain));
    check_equal(read(randomized.gradients(), Role::parameter).x,
                read(rope.gradients(), Role::parameter).x);
    CHECK(randomized.loss(plain) == rope.loss(plain));
    batch.positions.back() = 75;
    CHECK(randomized.differentiate(batch) != rope.differentiate(plain));
  }
}

TEST_CASE("an evaluation reaches the positions that training draws from, and no further") {
  const Threads one(1);  // many tiny passes
  ModelConfig c = randomized_config();
  const auto evaluate = [&](int64_t length) {
    Run run(c, Dtype::f32, 1, length, ModelUse::evaluation, 10);
    return run.loss(random_batch(1, length, c.vocab));
  };
  const double at_limit = evaluate(40);
  std::string message;
  try {
    evaluate(41);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::config);
    message = e.what();
  }
  CHECK(message.find("randomized_length: expected at most 40 positions") != std::string::npos);
  CHECK(message.find("found 41") != std::string::npos);
  c.attention.prior.pattern[0].options.set("randomized_length", 41.0);
  CHECK_NOTHROW(evaluate(41));
  c.attention.prior = prior("rope", {{"theta", 50.0}});
  CHECK(evaluate(40) == at_limit);
}

TEST_CASE("random positions reach the rotation alone") {
  // A common shift of all positions leaves the rotation unchanged, but would change fire's
  // denominators.
  const Threads one(1);  // many tiny passes
  ModelConfig c = randomized_config();
  const PriorChoice rope = c.attention.prior.of(0);
  c.layers = 3;
  c.attention.prior = PriorConfig({rope, prior("fire"), prior("rope", {{"theta", 50.0}})});
  Batch batch = random_batch(2, 19, c.vocab);
  const auto loss_behind = [&](int32_t first, int32_t stretch) {
    batch.positions.clear();
    for (int32_t i = 0; i < 38; ++i) batch.positions.push_back(first + stretch * (i % 19));
    return Run(c, Dtype::f64, 2, 19).differentiate(batch);
  };
  const double loss = loss_behind(0, 1);
  CHECK(std::abs(loss_behind(30, 1) - loss) < 1e-11);
  CHECK(std::abs(loss_behind(0, 3) - loss) > 1e-6);
}

}  // namespace
}  // namespace bamtrain::testing
