// The standard error of a mean over clusters, against closed forms, identities and the jackknife.

#include "core/clustered_mean.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "core/rng.h"

using namespace bamtrain;

namespace {

// The rounding error of a few fp64 additions of similar magnitude.
constexpr double kRounding = 1e-12;

/// Clusters of different sizes, each with its own mean.
std::vector<std::vector<double>> draw(int64_t number, uint64_t longest) {
  const Rng rng(7, "clusters");
  std::vector<std::vector<double>> out;
  uint64_t n = 0;
  for (int64_t c = 0; c < number; ++c) {
    const double level = 3 + rng.normal(n++);
    const uint64_t size = 1 + rng.below(n++, longest);
    std::vector<double>& values = out.emplace_back();
    for (uint64_t i = 0; i < size; ++i) values.push_back(level + rng.normal(n++));
  }
  return out;
}

std::vector<Cluster> summed(const std::vector<std::vector<double>>& values) {
  std::vector<Cluster> out;
  for (const std::vector<double>& of_one : values) {
    Cluster& c = out.emplace_back();
    for (double x : of_one) c.add(x);
  }
  return out;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

/// The ordinary standard error of the mean of independent values.
double standard_error_of(const std::vector<double>& x) {
  const double m = mean_of(x), n = static_cast<double>(x.size());
  double squares = 0;
  for (double v : x) squares += (v - m) * (v - m);
  return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

TEST_CASE("clusters of one size have the standard error of the mean of their means") {
  std::vector<std::vector<double>> values = draw(30, 1);
  std::vector<double> means;
  for (size_t c = 0; c < values.size(); ++c) {
    for (int i = 1; i < 8; ++i) values[c].push_back(values[c][0] + std::sin(i + 3.0 * c));
    means.push_back(mean_of(values[c]));
  }
  const ClusteredMean m = clustered_mean(summed(values));
  CHECK(m.count == 240);
  CHECK(m.clusters == 30);
  CHECK(m.mean == Approx(mean_of(means)).epsilon(kRounding));
  CHECK(m.error.value() == Approx(standard_error_of(means)).epsilon(kRounding));
}

TEST_CASE("clusters of one value each have the standard error of independent values") {
  const std::vector<std::vector<double>> values = draw(50, 1);
  std::vector<double> all;
  for (const auto& of_one : values) all.push_back(of_one[0]);
  CHECK(clustered_mean(summed(values)).error.value() ==
        Approx(standard_error_of(all)).epsilon(kRounding));
}

TEST_CASE("two clusters of any size: 2 n1 n2 |m1 - m2| / N^2") {
  const std::vector<Cluster> clusters = {{5.0, 2}, {56.0, 7}};
  CHECK(clustered_mean(clusters).error.value() ==
        Approx(2 * 2 * 7 * (8 - 2.5) / 81.0).epsilon(kRounding));
}

TEST_CASE("the jackknife over clusters agrees to first order") {
  const std::vector<std::vector<double>> values = draw(400, 60);
  const std::vector<Cluster> clusters = summed(values);
  const ClusteredMean m = clustered_mean(clusters);
  std::vector<double> without;  // means of all clusters but one
  for (size_t left_out = 0; left_out < values.size(); ++left_out) {
    std::vector<double> rest;
    for (size_t c = 0; c < values.size(); ++c) {
      if (c != left_out) rest.insert(rest.end(), values[c].begin(), values[c].end());
    }
    without.push_back(mean_of(rest));
  }
  const double G = 400, centre = mean_of(without);
  double variance = 0;
  for (double x : without) variance += (G - 1) / G * (x - centre) * (x - centre);
  // The mean without cluster c is m - (S_c - m n_c) / (N - n_c). Each square equals the formula's
  // up to a factor of ((1 - 1 / G) / (1 - n_c / N))^2.
  int64_t largest = 0;
  for (const Cluster& c : clusters) largest = std::max(largest, c.count);
  const double first_order = 2.0 * static_cast<double>(largest) / static_cast<double>(m.count);
  CHECK(first_order < 0.02);
  CHECK(m.error.value() * m.error.value() == Approx(variance).epsilon(first_order));
}

TEST_CASE("values repeated within their clusters tell nothing new, and a shift nothing at all") {
  std::vector<std::vector<double>> values = draw(40, 9);
  const ClusteredMean once = clustered_mean(summed(values));
  for (auto& of_one : values) {
    const std::vector<double> copy = of_one;
    for (int i = 0; i < 4; ++i) of_one.insert(of_one.end(), copy.begin(), copy.end());
  }
  const ClusteredMean repeated = clustered_mean(summed(values));
  CHECK(repeated.count == 5 * once.count);
  CHECK(repeated.mean == Approx(once.mean).epsilon(kRounding));
  CHECK(repeated.error.value() == Approx(once.error.value()).epsilon(kRounding));
  for (auto& of_one : values) {
    for (double& x : of_one) x += 2;
  }
  const ClusteredMean shifted = clustered_mean(summed(values));
  CHECK(shifted.mean == Approx(once.mean + 2).epsilon(kRounding));
  CHECK(shifted.error.value() == Approx(once.error.value()).epsilon(kRounding));
}

TEST_CASE("exp of a mean has the error of the mean times the slope of exp") {
  const std::vector<Cluster> clusters = summed(draw(40, 9));
  const ClusteredMean m = clustered_mean(clusters);
  const double h = 1e-6, slope = (std::exp(m.mean + h) - std::exp(m.mean - h)) / (2 * h);
  // The error is h^2 / 6 times the third derivative, plus rounding of 1e-16 / h.
  CHECK(m.error_of_exp().value() == Approx(slope * m.error.value()).epsilon(1e-9));
}

TEST_CASE("the error of a single cluster is unknown, and clusters without values do not count") {
  const std::vector<Cluster> one = {{0, 0}, {6, 4}, {0, 0}};
  const ClusteredMean m = clustered_mean(one);
  CHECK(m.mean == 1.5);
  CHECK(m.clusters == 1);
  CHECK_FALSE(m.error.has_value());
  CHECK_FALSE(m.error_of_exp().has_value());
  const std::vector<Cluster> two = {{6, 4}, {9, 3}}, gaps = {{0, 0}, {6, 4}, {0, 0}, {9, 3}};
  CHECK(clustered_mean(gaps).error == clustered_mean(two).error);
}

TEST_CASE("an error in a line of text") {
  CHECK(plus_minus(0.01234, 4) == " ± 0.0123");
  CHECK(plus_minus(2.0, 2) == " ± 2.00");
  CHECK(plus_minus(std::nullopt, 2).empty());
}
