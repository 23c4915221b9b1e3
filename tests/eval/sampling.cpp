// Which tokens may be drawn, and how often, compared with closed forms.

#include "eval/sampling.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "catch.h"
#include "core/error.h"

using namespace bamtrain;

namespace {

using Row = std::vector<double>;

const Rng kRng(11, "test.sampling");

/// Logits with this softmax.
Row logits_of(const Row& probabilities) {
  Row z;
  for (double p : probabilities) z.push_back(std::log(p) + 3.5);
  return z;
}

std::map<int32_t, int> counts(const Row& logits, const Sampling& s, int draws) {
  Sampler sampler(s, kRng);
  std::map<int32_t, int> found;
  for (int n = 0; n < draws; ++n) ++found[sampler.draw(logits, static_cast<uint64_t>(n))];
  return found;
}

/// All ids that occur in 4000 draws; in the tests, none is rarer than 1 in 100.
std::set<int32_t> drawn(const Row& logits, const Sampling& s) {
  std::set<int32_t> ids;
  for (const auto& [id, unused] : counts(logits, s, 4000)) ids.insert(id);
  return ids;
}
using IdSet = std::set<int32_t>;

/// Pearson's statistic of 1e5 draws, where an outcome of probability p is expected 1e5 p times.
/// With k outcomes its mean is k - 1. For k up to 8, it exceeds 45 in less than one of 1e6 samples.
/// The draws are the same in every run.
void check_frequencies(const Row& logits, const Sampling& s, const Row& probabilities) {
  constexpr int kDraws = 100000;
  auto found = counts(logits, s, kDraws);
  double statistic = 0;
  REQUIRE(probabilities.size() <= 8);
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const int n = found[static_cast<int32_t>(id)];
    const double expected = kDraws * probabilities[id];
    if (expected == 0) {
      CHECK(n == 0);
      continue;
    }
    statistic += (n - expected) * (n - expected) / expected;
  }
  CHECK(found.size() == probabilities.size());
  CHECK(statistic < 45);
}

const Row kProbabilities = {0.05, 0.4, 0.02, 0.2, 0.3, 0.03};

}  // namespace

TEST_CASE("draws have the frequencies of the softmax") {
  check_frequencies(logits_of(kProbabilities), {}, kProbabilities);
}

TEST_CASE("a temperature raises probabilities to its inverse as power") {
  for (const double temperature : {0.5, 2.0}) {
    Row powers;
    double sum = 0;
    for (double p : kProbabilities) sum += powers.emplace_back(std::pow(p, 1 / temperature));
    for (double& p : powers) p /= sum;
    Sampling s;
    s.temperature = temperature;
    check_frequencies(logits_of(kProbabilities), s, powers);
  }
}

TEST_CASE("what is kept keeps its proportions") {
  Sampling s;
  s.top_k = 3;
  check_frequencies(logits_of(kProbabilities), s, {0, 0.4 / 0.9, 0, 0.2 / 0.9, 0.3 / 0.9, 0});
}

TEST_CASE("temperature 0 takes the likeliest, of equals the first, whatever else is asked") {
  Sampling s;
  s.temperature = 0;
  CHECK(drawn({1, 5, -3, 5, 4.9}, s) == IdSet{1});
  s.top_k = 2;
  s.top_p = 0.1;
  s.min_p = 1;
  CHECK(drawn({1, 5, -3, 5, 4.9}, s) == IdSet{1});
  CHECK(drawn({-INFINITY, -7}, s) == IdSet{1});
}

TEST_CASE("a temperature close to 0 draws among the likeliest alone") {
  Sampling s;
  s.temperature = std::numeric_limits<double>::denorm_min();
  CHECK(drawn({1, 5, -3, 5, 4.9}, s) == IdSet{1, 3});
}

TEST_CASE("top_k keeps the k likeliest, of equals the first") {
  Sampling s;
  s.top_k = 2;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 4});
  CHECK(drawn({2, 2, 2, 2}, s) == IdSet{0, 1});
  s.top_k = 1;
  CHECK(drawn({2, 2, 3, 3}, s) == IdSet{2});
  s.top_k = 100;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{0, 1, 2, 3, 4, 5});
}

TEST_CASE("top_p keeps the fewest of the likeliest that have its share") {
  // Binary fractions, so that sums are exact.
  const Row p = {0.125, 0.5, 0.0625, 0.25, 0.0625};
  Row z;
  for (double x : p) z.push_back(std::log2(x) * std::log(2.0));
  const auto kept = [&](double top_p) {
    Sampling s;
    s.top_p = top_p;
    return drawn(z, s);
  };
  CHECK(kept(1e-9) == IdSet{1});
  CHECK(kept(0.499) == IdSet{1});
  CHECK(kept(0.51) == IdSet{1, 3});
  CHECK(kept(0.749) == IdSet{1, 3});
  CHECK(kept(0.76) == IdSet{0, 1, 3});
  CHECK(kept(0.88) == IdSet{0, 1, 2, 3});  // of equals, the first
  CHECK(kept(0.95) == IdSet{0, 1, 2, 3, 4});
  CHECK(kept(1) == IdSet{0, 1, 2, 3, 4});
}

TEST_CASE("a share that is met exactly is met: no further token is kept") {
  Sampling s;
  const Row equal(4, 1.5);  // weights of exactly 1, with sum 4
  s.top_p = 0.25;
  CHECK(drawn(equal, s) == IdSet{0});
  s.top_p = 0.5;
  CHECK(drawn(equal, s) == IdSet{0, 1});
  s.top_p = 0.75;
  CHECK(drawn(equal, s) == IdSet{0, 1, 2});
}

TEST_CASE("min_p keeps what is likely enough beside the likeliest") {
  Sampling s;
  s.min_p = 0.45;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 3, 4});
  s.min_p = 0.55;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 4});
  s.min_p = 1;
  CHECK(drawn({3, 1, 3}, s) == IdSet{0, 2});
}

TEST_CASE("filters follow each other: temperature, top_k, top_p, min_p") {
  // Of the top three (0.4, 0.3, 0.2 of 0.9), the first two have 0.777 of the sum. Of all, they have
  // 0.7.
  Sampling s;
  s.top_k = 3;
  s.top_p = 0.75;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 4});
  s.top_k = 0;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 3, 4});
  s.min_p = 0.7;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 4});
  // The squares 0.16, 0.09, 0.04 sum to 0.2938 with the others; the first has a share of 0.5446.
  s = {};
  s.top_p = 0.5;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1, 4});
  s.temperature = 0.5;
  CHECK(drawn(logits_of(kProbabilities), s) == IdSet{1});
}

TEST_CASE("a draw is a function of seed and index") {
  const Row z = logits_of(kProbabilities);
  Sampler a({}, kRng), b({}, kRng), other({}, Rng(12, "test.sampling"));
  int differ = 0;
  for (uint64_t n = 0; n < 200; ++n) {
    const int32_t token = a.draw(z, 199 - n);
    CHECK(b.draw(z, 199 - n) == token);
    CHECK(a.draw(z, 199 - n) == token);
    differ += other.draw(z, 199 - n) != token;
  }
  CHECK(differ > 50);
}

TEST_CASE("logits that are no numbers are refused") {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({temperature, 0, 1, 0}, kRng);
    for (const Row& z :
         {Row{1, NAN, 2}, Row{NAN}, Row{1, INFINITY}, Row{-INFINITY, -INFINITY}, Row{NAN, 5}}) {
      try {
        sampler.draw(z, 0);
        FAIL("an Error was expected");
      } catch (const Error& e) {
        CHECK(e.code() == ExitCode::nonfinite);
      }
    }
    CHECK(sampler.draw(Row{-INFINITY, 0, -INFINITY}, 0) == 1);
  }
}
