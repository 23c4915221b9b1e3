#include "data/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "core/rng.h"

using namespace bamtrain;

namespace {

/// 1/2 of the sum of 1 / F for the Fibonacci numbers F = 1, 1, 2, 3, 5, ...: 1.6799.
double proven_bound() {
  double sum = 0, a = 1, b = 1;
  for (int i = 0; i < 80; ++i) {
    sum += 1 / a;
    const double next = a + b;
    a = b;
    b = next;
  }
  return sum / 2;
}

/// The largest difference between a source's count and its share, over every prefix of n numbers.
/// Also checks that each source's own numbers are consecutive.
double largest_error(const std::vector<double>& weights, int64_t n) {
  const Interleave order(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> counts(weights.size(), 0);
  double worst = 0;
  int64_t gaps = 0;
  for (int64_t k = 0; k < n; ++k) {
    const Interleave::Place p = order(k);
    gaps += p.number != counts.at(static_cast<size_t>(p.source))++;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double share = weights[i] / sum * static_cast<double>(k + 1);
      worst = std::max(worst, std::abs(static_cast<double>(counts[i]) - share));
    }
  }
  CHECK(gaps == 0);
  return worst;
}

}  // namespace

TEST_CASE("one source has every number") {
  const Interleave order({0.3});
  for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{77}, (int64_t{1} << 62) - 1}) {
    CHECK(order(k) == Interleave::Place{0, k});
  }
}

TEST_CASE("two equal sources take turns, and three to one is three to one in every four") {
  const Interleave equal({1, 1}), uneven({1, 3});
  for (int64_t k = 0; k < 1000; ++k) CHECK(equal(k).number == k / 2);
  for (int64_t k = 0; k < 1000; k += 4) {
    int64_t first = 0;
    for (int64_t i = 0; i < 4; ++i) first += uneven(k + i).source == 0;
    CHECK(first == 1);
  }
}

TEST_CASE("realised shares are within half a window for two sources, in every beginning") {
  for (const double w : {0.5, 0.3, 1e-3, 0.999999, 1 / 3.0}) {
    INFO(w);
    // One half, plus the rounding of the comparison: 20,000 numbers of 53 bits.
    CHECK(largest_error({w, 1 - w}, 20000) <= 0.5 + 1e-10);
  }
}

TEST_CASE("realised shares stay within the proven bound for any number of sources") {
  CHECK(proven_bound() == Approx(1.67994).margin(1e-5));
  const Rng rng(5, "weights");
  uint64_t draw = 0;
  double worst = 0;
  for (const size_t sources : {3, 4, 5, 8, 13, 40}) {
    for (int trial = 0; trial < 8; ++trial) {
      std::vector<double> weights;
      // From nearly equal to very uneven.
      for (size_t s = 0; s < sources; ++s) weights.push_back(std::exp(trial * rng.uniform(draw++)));
      worst = std::max(worst, largest_error(weights, 5000));
    }
    std::vector<double> fibonacci = {1, 1};  // the deepest possible tree
    while (fibonacci.size() < sources) {
      fibonacci.push_back(fibonacci[fibonacci.size() - 1] + fibonacci[fibonacci.size() - 2]);
    }
    worst = std::max(worst, largest_error(fibonacci, 5000));
  }
  CHECK(worst < proven_bound());
  CHECK(worst > 0.5);  // with more sources, shares can be off by more than half a window
}

TEST_CASE("shares hold far out, where a sequence cannot be followed from its beginning") {
  const std::vector<double> weights = {5, 3, 1.5, 0.5};
  const Interleave order(weights);
  for (const int64_t far : {int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 46}) {
    std::vector<int64_t> next(weights.size(), -1);
    for (int64_t k = far; k < far + 1000; ++k) {
      const auto [source, number] = order(k);
      const auto s = static_cast<size_t>(source);
      const double share = weights[s] / 10 * static_cast<double>(k);
      // Shares have 53 bits, so they are off by at most 2^-53 of 2^46 windows in each of three
      // nodes.
      CHECK(std::abs(static_cast<double>(number) - share) < proven_bound() + 0.1);
      if (next[s] >= 0) CHECK(number == next[s]);
      next[s] = number + 1;
    }
  }
}

TEST_CASE("weights count against each other alone, however large or small") {
  const Interleave plain({1, 2, 5}), large({2e307, 4e307, 1e308}), small({1e-300, 2e-300, 5e-300});
  for (int64_t k = 0; k < 2000; ++k) {
    CHECK(plain(k) == large(k));
    CHECK(plain(k) == small(k));
  }
  const std::vector<double> shares = shares_of({2e307, 4e307, 1e308});
  CHECK(shares[0] == Approx(0.125));
  CHECK(shares[1] == Approx(0.25));
  CHECK(shares[2] == Approx(0.625));
}
