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
  // The number of a window in a long run: past 2^32 tokens.
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
  // Chi squared with 9 degrees of freedom: mean 9, variance 18; five deviations.
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
  // Of two independent subsets, how many positions of the one lie `shift` behind one of the other:
  // N places may, each with probability f^2, two of them with g^2.
  const double f = 1.0 * T / L, g = f * (T - 1) / (L - 1);
  for (int64_t lag = 1; lag <= 3; ++lag) {
    std::vector<double> mean(2 * kFurthest + 1);
    for (int64_t n = 0; n < kPairs; ++n) {
      const int64_t sequence = n * (lag + 1);  // every sequence in one pair
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

ModelConfig randomized_config() {
  ModelConfig c = small_config();
  c.attention.document_mask = true;
  c.attention.prior = prior("rope", {{"theta", 50.0}, {"randomized", true}});
  return c;
}

// golden.cpp has the models at random positions.
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
  // Moved together they leave it as it is; fire's denominators would not be the same.
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
