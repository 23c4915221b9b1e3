// Paired differences, compared with regressions and t-tests by numpy and scipy
// (scripts/golden/statistics.py), with closed forms and with the jackknife.

#include "core/paired_difference.h"

#include <cmath>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "core/statistics_golden.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// The losses of model 0 or 1 in the documents of a golden case.
std::vector<Cluster> clusters_of(const nlohmann::json& documents, size_t model) {
  std::vector<Cluster> out;
  for (const auto& document : documents) {
    Cluster& c = out.emplace_back();
    for (const auto& loss : document[model]) c.add(loss);
  }
  return out;
}

}  // namespace

TEST_CASE("differences by document are those of a cluster-robust regression") {
  for (const auto& row : statistics_golden()["paired"]) {
    const std::vector<Cluster> a = clusters_of(row["documents"], 0);
    const std::vector<Cluster> b = clusters_of(row["documents"], 1);
    const PairedDifference loss = paired_difference(a, b);
    const PairedDifference perplexity = paired_difference_of_exp(a, b);
    INFO(a.size() << " documents");
    CHECK(loss.pairs == std::ssize(a));
    CHECK(loss.value == Approx(row["loss"].get<double>()).epsilon(1e-10));
    CHECK(loss.error.value() == Approx(row["loss_error"].get<double>()).epsilon(1e-10));
    CHECK(loss.p.value() == Approx(row["p"].get<double>()).epsilon(1e-9));
    CHECK(perplexity.value == Approx(row["perplexity"].get<double>()).epsilon(1e-10));
    CHECK(perplexity.error.value() == Approx(row["perplexity_error"].get<double>()).epsilon(1e-10));
    CHECK(perplexity.p == loss.p);
    const PairedDifference swapped = paired_difference(b, a);
    CHECK(swapped.value == -loss.value);
    CHECK(swapped.p == loss.p);
  }
}

TEST_CASE("differences by seed are scipy's paired t-test") {
  for (const auto& row : statistics_golden()["seeds"]) {
    INFO(row.dump());
    const auto a = row["a"].get<std::vector<double>>(), b = row["b"].get<std::vector<double>>();
    const PairedDifference d = paired_difference(a, b);
    CHECK(d.pairs == std::ssize(a));
    CHECK(d.value == Approx(row["difference"].get<double>()).epsilon(1e-12));
    CHECK(d.error.value() == Approx(row["error"].get<double>()).epsilon(1e-10));
    CHECK(d.p.value() == Approx(row["p"].get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("what pairs have in common does not count") {
  const Rng rng(11, "pairs");
  std::vector<Cluster> a, b, shifted_a, shifted_b;
  for (uint64_t c = 0; c < 40; ++c) {
    const auto n = static_cast<int64_t>(1 + rng.below(3 * c, 30));
    const double common = 50 * rng.normal(3 * c + 1), own = 0.01 * rng.normal(3 * c + 2);
    a.push_back({own, n});
    b.push_back({0, n});
    shifted_a.push_back({own + common, n});
    shifted_b.push_back({common, n});
  }
  const PairedDifference alone = paired_difference(a, b);
  const PairedDifference shifted = paired_difference(shifted_a, shifted_b);
  CHECK(shifted.value == Approx(alone.value).epsilon(1e-9));
  CHECK(shifted.error.value() == Approx(alone.error.value()).epsilon(1e-9));
  // The error of one mean alone is far larger.
  CHECK(clustered_mean(shifted_a).error.value() > 100 * shifted.error.value());
}

TEST_CASE("the jackknife over documents agrees with the error of a difference of perplexities") {
  const Rng rng(12, "jackknife");
  std::vector<Cluster> a, b;
  for (uint64_t c = 0; c < 300; ++c) {
    const auto n = static_cast<int64_t>(20 + rng.below(3 * c, 20));
    const double level = 3 + 0.3 * rng.normal(3 * c + 1);
    a.push_back({static_cast<double>(n) * level, n});
    b.push_back({static_cast<double>(n) * (level + 0.1 + 0.05 * rng.normal(3 * c + 2)), n});
  }
  const auto difference = [&](size_t left_out) {
    double sum_a = 0, sum_b = 0, count = 0;
    for (size_t c = 0; c < a.size(); ++c) {
      if (c == left_out) continue;
      sum_a += a[c].sum;
      sum_b += b[c].sum;
      count += static_cast<double>(a[c].count);
    }
    return std::exp(sum_a / count) - std::exp(sum_b / count);
  };
  const double G = 300;
  double mean = 0, variance = 0;
  for (size_t c = 0; c < a.size(); ++c) mean += difference(c) / G;
  for (size_t c = 0; c < a.size(); ++c) {
    variance += (G - 1) / G * (difference(c) - mean) * (difference(c) - mean);
  }
  const PairedDifference d = paired_difference_of_exp(a, b);
  CHECK(d.value == Approx(difference(a.size())).epsilon(1e-12));
  // To first order in 1 / G and in the spread of the documents' sizes.
  CHECK(d.error.value() == Approx(std::sqrt(variance)).epsilon(0.01));
}

TEST_CASE("no p without a spread of the differences") {
  const std::vector<Cluster> one = {{3, 2}}, other = {{4, 2}};
  CHECK(paired_difference(one, other).value == -0.5);
  CHECK_FALSE(paired_difference(one, other).error);
  CHECK_FALSE(paired_difference(one, other).p);
  const std::vector<double> a = {0.3, 0.6, 0.9}, b = {0.2, 0.5, 0.8};  // equal up to rounding
  CHECK(paired_difference(a, b).value == Approx(0.1));
  CHECK_FALSE(paired_difference(a, b).p);
  CHECK(paired_difference(a, a).error.value() == 0);
  CHECK_FALSE(paired_difference(a, a).p);
  // Perplexities beyond fp64.
  const std::vector<Cluster> huge = {{1e5, 1}, {2e5, 1}}, small = {{1, 1}, {2, 1}};
  CHECK_FALSE(paired_difference_of_exp(huge, small).error);
}

TEST_CASE("a difference in a line of text has two digits of its error") {
  CHECK(difference_text(1.2345, 0.0801) == "+1.234 ± 0.080");
  CHECK(difference_text(-12.345, 3.21) == "-12.35 ± 3.21");
  CHECK(difference_text(0.0001234, 0.0000456) == "+0.000123 ± 0.000046");
  CHECK(difference_text(2, std::nullopt) == "+2.00");
  CHECK(difference_text(2, 0.5, " $\\pm$ ") == "+2.00 $\\pm$ 0.50");
}
