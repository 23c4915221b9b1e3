#include "report/metrics_history.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/rng.h"

using namespace bamtrain;

namespace {

constexpr int64_t kMillion = 1'000'000;

/// Noise with one peak, and a validation every thousand steps.
MetricsLine noisy_line(int64_t step) {
  static const Rng rng(1, "metrics");
  const auto noise = [&](uint64_t of) { return rng.uniform(8 * static_cast<uint64_t>(step) + of); };
  MetricsLine m = {
      step, 10.0 * static_cast<double>(step), 2 + noise(0), noise(1), noise(2), noise(3),
      NAN,  static_cast<double>(step),        noise(4)};
  m.data_wait = noise(6);
  if (step == 123'457) m.grad_norm = 1e6;
  if (step % 1000 == 0) m.validation_loss = 3 + noise(5);
  return m;
}

template <class F>
void check_extremes(const std::vector<HistoryLine>& shown, F&& value) {
  double low = INFINITY, high = -INFINITY, low_shown = INFINITY, high_shown = -INFINITY;
  for (int64_t step = 1; step <= kMillion; ++step) {
    const double v = value(noisy_line(step));
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
  for (const HistoryLine& m : shown) {
    const double v = value(m);
    if (std::isfinite(v)) low_shown = std::min(low_shown, v), high_shown = std::max(high_shown, v);
  }
  CHECK(low_shown == low);
  CHECK(high_shown == high);
}

}  // namespace

TEST_CASE("a short run's history is all of it") {
  MetricsHistory history;
  for (int64_t step = 1; step <= 1000; ++step) history.add(noisy_line(step));
  REQUIRE(history.lines().size() == 1000);
  for (int64_t step = 1; step <= 1000; ++step) {
    CHECK(history.lines()[static_cast<size_t>(step - 1)].loss == noisy_line(step).loss);
  }
}

TEST_CASE("of a million lines so many are kept as memory was planned for, and every peak") {
  MetricsHistory history;
  size_t most = 0;
  for (int64_t step = 1; step <= kMillion; ++step) {
    history.add(noisy_line(step));
    most = std::max(most, history.lines().capacity());
  }
  CHECK(most * sizeof(HistoryLine) <= static_cast<size_t>(MetricsHistory::kBytes));
  CHECK(MetricsHistory::kBytes < 2 << 20);
  CHECK(history.added() == kMillion);
  const std::vector<HistoryLine>& shown = history.lines();
  CHECK(shown.front().step == 1);
  CHECK(shown.back().step == kMillion);
  CHECK(std::isfinite(shown.back().validation_loss));
  for (size_t i = 1; i < shown.size(); ++i) REQUIRE(shown[i].step > shown[i - 1].step);
  check_extremes(shown, [](const MetricsLine& m) { return m.loss; });
  check_extremes(shown, [](const MetricsLine& m) { return m.lr; });
  check_extremes(shown, [](const MetricsLine& m) { return m.grad_norm; });
  check_extremes(shown, [](const MetricsLine& m) { return m.tokens_per_second; });
  check_extremes(shown, [](const MetricsLine& m) { return m.validation_loss; });
  check_extremes(shown, [](const MetricsLine& m) { return m.mfu; });
  check_extremes(shown, [](const MetricsLine& m) { return m.data_wait; });
  // No interval of the run is without lines.
  for (size_t i = 1; i < shown.size(); ++i) {
    REQUIRE(shown[i].step - shown[i - 1].step <= 2 * kMillion / 512);
  }
  // Kept lines are unchanged.
  for (const HistoryLine& m : shown) REQUIRE(m.loss == noisy_line(m.step).loss);
}

TEST_CASE("the smoothed loss is the mean of all lines, then of ten, then of a fiftieth") {
  MetricsHistory history;
  double sum = 0, ten = 0;
  for (int64_t step = 1; step <= 10'000; ++step) {
    const double loss = noisy_line(step).loss;
    history.add(noisy_line(step));
    const double smoothed = history.lines().back().smoothed_loss;
    const auto n = static_cast<double>(step);
    if (step <= 10) {
      sum += loss;
      ten = sum / n;
    } else {
      ten += (loss - ten) * std::min(0.1, 50 / n);
    }
    // Sums of up to ten numbers below 3, with as many roundings, for values near 3.
    REQUIRE(smoothed == Approx(ten).epsilon(1e-13));
  }
  // 200 numbers spread uniformly over 2 to 3: mean 2.5, with a standard deviation of sqrt(1 / 12 /
  // 400) = 0.014.
  CHECK(history.lines().back().smoothed_loss == Approx(2.5).margin(5 * 0.014));
}
